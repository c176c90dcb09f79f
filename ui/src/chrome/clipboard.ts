// The clipboard. Browsers only offer it on loopback and over TLS; elsewhere a hidden field and the old command do.

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByField(text);
  }
}

function copyByField(text: string): boolean {
  const before = document.activeElement,
    field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden-text";
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } finally {
    field.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}

/** Hands a file to the reader. */
export function download(name: string, type: string, data: string | ArrayBuffer): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
