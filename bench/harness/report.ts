import { printTable } from '../print-table.ts';

/** Rows of texts, the first column to the left. */
export interface Table {
  readonly title: string;
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Point {
  /** What the line, or the bar, is called. */
  readonly series: string;
  readonly x: number | string;
  readonly y: number;
}

/** Lines over a number, or bars beside names. */
export interface Chart {
  /** Its file in `docs/benchmarks/`, without the ending. */
  readonly name: string;
  readonly title: string;
  readonly kind: 'lines' | 'bars';
  readonly x: string;
  readonly y: string;
  readonly points: readonly Point[];
  /** Whether the y axis is logarithmic. @default false */
  readonly log?: boolean;
}

/** What a scenario shows to people. */
export interface Report {
  readonly tables: readonly Table[];
  readonly charts: readonly Chart[];
  /** What a reader has to know to read the tables, a sentence each. */
  readonly remarks: readonly string[];
}

export function print({ tables, remarks }: Report): void {
  for (const { title, header, rows } of tables) printTable(title, header, rows);
  console.log(`\n${remarks.join('\n')}\n`);
}
