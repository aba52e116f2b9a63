import { migration, namesIn, type TablePlace } from './table-names.ts';

/** The storage settings that the guide "Schema" advises for many jobs per second. */
export function tuningSql(place: TablePlace): string {
  const { at } = namesIn(place);
  return migration([
    `alter table ${at('jobs')} set (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.05
)`,
    `alter table ${at('results')} set (autovacuum_vacuum_scale_factor = 0.02, ` +
      'autovacuum_vacuum_insert_scale_factor = 0.05)',
  ]);
}
