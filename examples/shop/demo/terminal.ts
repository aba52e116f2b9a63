/** How the demo prints: a timed line per event, live lines while there is something to watch, and tables. */
import { stdout } from 'node:process';
import { stripVTControlCharacters, styleText } from 'node:util';

export const isTerminal = stdout.isTTY === true;
const hasColours = isTerminal && !process.env.NO_COLOR;

export function styled(style: Parameters<typeof styleText>[0], text: string): string {
  return hasColours ? styleText(style, text) : text;
}

/** Says that something has happened, and when. */
export function say(text: string): void {
  showLive([]);
  const seconds = process.uptime().toFixed(1).padStart(5);
  console.log(`${styled('dim', `${seconds} s`)}  ${text}`);
}

let liveLines = 0;

/** Shows lines below everything else, until others or `say` replace them. For terminals only. */
export function showLive(lines: readonly string[]): void {
  // Up to the start of the first of those before, and everything from there is cleared.
  const clear = liveLines > 0 ? `\x1b[${liveLines}F\x1b[J` : '';
  stdout.write(clear + lines.map((line) => `${line}\n`).join(''));
  liveLines = lines.length;
}

export function heading(text: string): void {
  console.log(`\n${styled('bold', text)}`);
}

type Cell = string | number | null;

/** Prints rows under the names of their columns; columns of numbers stand to the right. */
export function table(columns: readonly string[], rows: readonly (readonly Cell[])[]): void {
  const texts = rows.map((row) => row.map((cell) => shortened(String(cell ?? '–'))));
  const widths = columns.map((column, at) => Math.max(column.length, ...texts.map((row) => width(row[at]))));
  const numeric = columns.map((_, at) => rows.every((row) => typeof row[at] === 'number'));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => {
        const space = ' '.repeat((widths[at] ?? 0) - width(cell));
        return numeric[at] ? space + cell : cell + space;
      })
      .join('  ')
      .trimEnd();
  console.log(`  ${styled('dim', line(columns))}`);
  console.log(`  ${styled('dim', line(widths.map((columnWidth) => '─'.repeat(columnWidth))))}`);
  for (const row of texts) console.log(`  ${line(row)}`);
}

/** An error's message may be of any length, a line of the terminal not. */
function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

function width(text = ''): number {
  return stripVTControlCharacters(text).length;
}
