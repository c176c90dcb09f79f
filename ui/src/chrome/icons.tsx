/** Drawn on a grid of 16, with the stroke of the text around them. */

const PATHS = {
  home: "M2.5 8 8 3l5.5 5M4 7v6h3V9.5h2V13h3V7",
  node: "M2 4h12M2 8h3.5m3 0H14M2 12h12M5.5 6.8h3v2.4h-3z",
  incidents: "M8 2.2 14.3 13H1.7zM8 6.4v3.2m0 1.6v.2",
  cgroups: "M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9.2l4 3.8m0-3.8-4 3.8",
  audit: "M4 2h6l3 3v9H4zM6 8l1.5 1.5L10.5 6.5M6 12h4",
  fleet: "M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4zM9.5 11.5h4M11.5 9.5v4",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.4 10.4 14 14",
  light:
    "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.7M8 13.3V15M1 8h1.7M13.3 8H15M3.1 3.1l1.2 1.2M11.7 11.7l1.2 1.2M12.9 3.1l-1.2 1.2M4.3 11.7l-1.2 1.2",
  dark: "M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z",
  system: "M2 3h12v8H2zM6 14h4M8 11v3",
  help: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM6.2 6.4a1.8 1.8 0 1 1 2.6 1.7c-.6.3-.8.6-.8 1.3M8 11.4v.2",
  palette: "M2.5 4.5 6 8l-3.5 3.5M8 12h5.5",
  close: "m4 4 8 8m0-8-8 8",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  left: "m10 3-5 5 5 5",
  right: "m6 3 5 5-5 5",
  whole: "M2 3v10M14 3v10M4.5 8h7M6.5 6l-2 2 2 2M9.5 6l2 2-2 2",
  play: "M5 3.2v9.6L13 8z",
  pause: "M5 3.5v9M11 3.5v9",
  lock: "M4 7.5h8V14H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5M8 10v1.5",
  warning: "M8 2.2 14.3 13H1.7zM8 6.4v3.2m0 1.6v.2",
  empty: "M2 12h12M2 12V8.5M5 12v-1.5M8 12v-1M11 12v-1.5M14 12V9.5",
  wait: "M8 2a6 6 0 1 1-6 6",
  copy: "M6 5.5h7.5V14H6zM10.5 5.5V2H3v8.5h3",
  check: "m3 8.5 3.5 3.5L13 4.5",
  filter: "M2 3h12L9.5 8.5V13l-3 1.2V8.5z",
  link: "M6.5 9.5 9.5 6.5M7 4.5 8.5 3a3.2 3.2 0 0 1 4.5 4.5L11.5 9M4.5 7 3 8.5A3.2 3.2 0 0 0 7.5 13L9 11.5",
  clear: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM5.8 5.8l4.4 4.4m0-4.4-4.4 4.4",
  swap: "M3 5.5h9.5m-3-3 3 3-3 3M13 10.5H3.5m3-3-3 3 3 3",
  // what happens on a node
  nic: "M5 2v4M11 2v4M3.5 6h9v3a4.5 4.5 0 0 1-9 0zM8 13.5V15",
  lockup: "M4 7.5h8V14H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
  restart: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  failed: "m4 4 8 8m0-8-8 8",
  oom: "M3 4.5h10v7H3zM5 2.5v2M8 2.5v2M11 2.5v2M5 11.5v2M8 11.5v2M11 11.5v2M6.5 6.7l3 2.6m0-2.6-3 2.6",
  stall: "M4.5 2h7M4.5 14h7M5.5 2c0 4 5 4 5 6s-5 2-5 6M10.5 2c0 4-5 4-5 6s5 2 5 6",
  churn: "M3 3h4v4H3zM9 9h4v4H9zM9.5 4.5h2.5V7M6.5 11.5H4V9",
  pod: "m8 1.8 5.4 2.6 1.2 5.8L11 14.4H5L1.4 10.2l1.2-5.8z",
  ray: "M8 8 3 3m5 5 5-5M8 8l-5 5m5-5 5 5M8 6.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6z",
  mark: "M4 14.5V2M4 2.5h8.5L10 5.7 12.5 9H4",
  log: "M3 4h10M3 8h7M3 12h9",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      class={`icon icon-${name}`}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      aria-hidden="true"
      focusable="false"
    >
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
