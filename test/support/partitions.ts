import postgres from 'postgres';
import { readPages } from '../docs/pages.ts';

/** How `queue_jobs` and `queue_results` are partitioned by queue. */
export type Partitioning = 'list' | 'hash';

/** What the environment variable PARTITIONS says: a run of the tests on partitioned tables, or on plain ones. */
export function partitioningOf(value: string | undefined): Partitioning | undefined {
  if (value === undefined || value === '') return undefined;
  if (value === 'list' || value === 'hash') return value;
  throw new Error(`PARTITIONS must be list or hash, got ${value}`);
}

const BREAKPOINT = '\n--> statement-breakpoint\n';

/** The custom migration that docs/scaling.md gives, as its reader would copy it, or change it for hashes. */
export function partitionMigration(partitioning: Partitioning): string {
  const byList = onlyBlock('', 'partition by list ');
  if (partitioning === 'list') return byList;
  const partitions = onlyBlock('in place of the partitions above', 'remainder').split(BREAKPOINT);
  const replaced = new Set<string>();
  return byList
    .replaceAll('partition by list (', 'partition by hash (')
    .split(BREAKPOINT)
    .flatMap((statement) => {
      const table = / partition of (\w+) /.exec(statement)?.[1];
      if (table === undefined) return statement;
      if (replaced.has(table)) return [];
      replaced.add(table);
      return partitions.filter((each) => each.includes(` partition of ${table} `));
    })
    .join(BREAKPOINT);
}

/** The custom migration of the page that partitions the results by time. */
export function resultsByTimeMigration(): string {
  return onlyBlock('', 'partition by range ');
}

/** What the page says to run every day once the results are partitioned by time. */
export function dailyUpkeep(): string {
  return onlyBlock('on results by time', '');
}

/** What the page says may be run on partitioned tables, each in a transaction. */
export function laterChanges(): string[] {
  return scalingBlocks('on partitioned tables');
}

function onlyBlock(info: string, text: string): string {
  const [code, ...more] = scalingBlocks(info).filter((code) => code.includes(text));
  if (code === undefined || more.length > 0) {
    throw new Error(`docs/scaling.md must have one block "${info}" with "${text}"`);
  }
  return code;
}

function scalingBlocks(info: string): string[] {
  const page = readPages().find(({ path }) => path === 'docs/scaling.md');
  return (page?.blocks ?? [])
    .filter((block) => block.language === 'sql' && block.info === info)
    .map(({ code }) => code);
}

/** Carries the migration out as drizzle-kit would: in one transaction. */
export async function partitionTables(url: string, partitioning: Partitioning): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await client.begin((sql) => sql.unsafe(partitionMigration(partitioning)));
  } finally {
    await client.end();
  }
}
