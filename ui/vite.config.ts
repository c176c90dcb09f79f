// Builds the page into the Python package; `npm run dev` serves it with the API of a zombiescope that runs beside it.
import { defineConfig } from "vite";

const environment = (globalThis as unknown as { process: { env: Record<string, string | undefined> } }).process.env;

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/zombiescope/web/page",
    emptyOutDir: true,
    target: "es2022",
    // One script and one sheet: the frozen page puts both into one file.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    rollupOptions: { output: { codeSplitting: false } },
  },
  // The server looks at the Host of a request, so it must be the server's own.
  server: {
    proxy: { "/api": { target: environment.ZOMBIESCOPE_URL ?? "http://127.0.0.1:8321", changeOrigin: true } },
  },
});
