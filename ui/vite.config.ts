// Builds the page into the Python package; `npm run dev` serves it with the API of a zombiescope that runs beside it.
import { defineConfig } from "vite";

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
  server: { proxy: { "/api": "http://127.0.0.1:8321" } },
});
