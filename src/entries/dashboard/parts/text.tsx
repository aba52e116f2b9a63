import { h } from '../html.ts';

/** Characters that change the direction of text, or cannot be seen, would make it look like another. */
const DECEIVING = /[^\P{C}\t\n\r]|[\u115f\u1160\u3164\uffa0]/gu;

/** A foreign text with its deceiving characters written out. */
export function visible(text: string): string {
  return text.replace(DECEIVING, (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);
}

/** A name or a message from another source. It cannot change the text around it. */
export function Foreign({ text, mono = false }: { readonly text: string; readonly mono?: boolean }) {
  return <bdi class={mono ? 'mono' : undefined}>{visible(text)}</bdi>;
}

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;
const MAX_COLOURED = 16_000;

/** A JSON text with colours; it is never parsed, so its numbers stay as they are. */
export function JsonText({ text }: { readonly text: string }) {
  const clean = visible(text);
  if (clean.length > MAX_COLOURED) return <code>{clean}</code>;
  const parts: unknown[] = [];
  let end = 0;
  for (const match of clean.matchAll(TOKENS)) {
    const [whole, string, colon, number] = match;
    if (match.index > end) parts.push(clean.slice(end, match.index));
    const name =
      string === undefined ? (number === undefined ? 'j-word' : 'j-number') : colon ? 'j-key' : 'j-text';
    parts.push(<span class={name}>{string ?? whole}</span>, colon ?? '');
    end = match.index + whole.length;
  }
  parts.push(clean.slice(end));
  return <code>{parts}</code>;
}
