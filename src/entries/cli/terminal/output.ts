import { inLine, json, printable } from './printable.ts';
import { cutTo, widthOf } from './width-of.ts';

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export type Style = keyof typeof CODES;

/** One cell of a table: a text, and how it looks. */
export interface Cell {
  readonly text: string;
  readonly style?: Style | undefined;
}

/** A stream to write to, as `process.stdout` is. */
export interface Out extends Pick<NodeJS.WriteStream, 'write' | 'once' | 'off'> {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** Writes what a command prints: texts and tables for people, or documents of JSON. */
export class Output {
  readonly json: boolean;
  readonly #out: Out;
  readonly #styled: boolean;

  constructor({ json, out = process.stdout }: { readonly json: boolean; readonly out?: Out }) {
    this.json = json;
    this.#out = out;
    this.#styled = !json && isStyled(out);
  }

  /** Whether a user watches, so that a picture may be redrawn. */
  get isTerminal(): boolean {
    return this.#out.isTTY === true;
  }

  /** How many columns there are; `Infinity` without a terminal. */
  get columns(): number {
    return this.isTerminal ? (this.#out.columns ?? 80) : Number.POSITIVE_INFINITY;
  }

  /** How many lines there is room for; `Infinity` without a terminal. */
  get lines(): number {
    return this.isTerminal ? (this.#out.rows ?? 24) : Number.POSITIVE_INFINITY;
  }

  styled(text: string, style: Style | undefined): string {
    if (style === undefined || !this.#styled) return text;
    const [on, off] = CODES[style];
    return `\u001b[${on}m${text}\u001b[${off}m`;
  }

  /** Waits while a reader is slow, so that a large answer is not kept in memory. */
  async write(text: string): Promise<void> {
    if (this.#out.write(text)) return;
    await new Promise<void>((resolve) => {
      const go = () => {
        this.#out.off('drain', go);
        this.#out.off('close', go);
        resolve();
      };
      this.#out.once('drain', go);
      this.#out.once('close', go);
    });
  }

  async line(text = '', style?: Style): Promise<void> {
    await this.write(`${this.styled(printable(text), style)}\n`);
  }

  /** One document, with the version of its form. */
  async document(value: Readonly<Record<string, unknown>>): Promise<void> {
    await this.write(`${json({ version: 1, ...value }, 2)}\n`);
  }

  /** One document in one line, of many. */
  async record(value: Readonly<Record<string, unknown>>): Promise<void> {
    await this.write(`${json({ version: 1, ...value })}\n`);
  }

  /** Lines whose columns stand under each other, numbers to the right; the last one is cut to the width. */
  async table(
    head: readonly string[],
    rows: readonly (readonly Cell[])[],
    right: ReadonlySet<number>,
  ): Promise<void> {
    for (const line of this.rows(head, rows, right)) await this.write(`${line}\n`);
  }

  rows(head: readonly string[], rows: readonly (readonly Cell[])[], right: ReadonlySet<number>): string[] {
    const all = [head.map((text): Cell => ({ text, style: 'dim' })), ...rows].map((row) =>
      row.map(({ text, style }) => ({ text: inLine(text), style })),
    );
    const widths = head.map((_, column) => Math.max(...all.map((row) => widthOf(row[column]?.text ?? ''))));
    const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0);
    return all.map((row) =>
      row
        .map(({ text, style }, column) => {
          const isLast = column === row.length - 1;
          const shown = isLast ? cutTo(text, Math.max(8, this.columns - before - 1)) : text;
          const fill = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(shown)));
          const cell = this.styled(shown, style);
          if (right.has(column)) return fill + cell;
          return isLast ? cell : cell + fill;
        })
        .join('  ')
        .trimEnd(),
    );
  }
}

/** `NO_COLOR` and `FORCE_COLOR` as everywhere; no colours without a terminal. */
function isStyled(out: Out): boolean {
  if (process.env.NO_COLOR) return false;
  if (process.env.FORCE_COLOR) return process.env.FORCE_COLOR !== '0';
  return out.isTTY === true && process.env.TERM !== 'dumb';
}
