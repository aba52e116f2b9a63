import { titleOf } from './combinations.ts';
import type { Shown } from './show.ts';

/** Prints what failed, then a table with a line for each combination, then a line with the sums. */
export function printTable(shown: readonly Shown[], durationMs: number): void {
  for (const { combination, failures } of shown) {
    for (const failure of failures) console.log(`\n${titleOf(combination)}: ${failure}`);
  }
  const rows = shown.map(({ combination, passed, skipped, failures, durationMs: tookMs }) => [
    ...Object.values(combination),
    String(passed),
    String(skipped),
    String(failures.length),
    (tookMs / 1_000).toFixed(1),
  ]);
  const table = [['drizzle', 'driver', 'runtime', 'postgres', 'passed', 'cannot', 'failed', 's'], ...rows];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  console.log();
  for (const row of table) {
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
  const failed = shown.filter(({ failures }) => failures.length > 0).length;
  console.log(`\nIn ${Math.round(durationMs / 1_000)} s, combinations:`);
  console.log(`${shown.length - failed} passed, ${failed} failed`);
}
