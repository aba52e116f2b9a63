import type { Say } from './run-program.ts';

/** Says rows as a table: the keys first, texts to the left, numbers to the right. */
export function sayTable(say: Say, rows: readonly Readonly<Record<string, string | number>>[]): void {
  const names = Object.keys(rows[0] ?? {});
  const lines = [names, ...rows.map((row) => names.map((name) => row[name] ?? ''))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => String(line[column]).length)));
  for (const line of lines) {
    const cells = line.map((cell, column) => {
      const isNumber = typeof rows[0]?.[names[column] ?? ''] === 'number';
      const width = widths[column] ?? 0;
      return isNumber ? String(cell).padStart(width) : String(cell).padEnd(width);
    });
    say(cells.join('  ').trimEnd());
  }
}
