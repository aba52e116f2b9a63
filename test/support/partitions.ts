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

/** The custom migration that docs/scaling.md gives, as its reader would copy it. */
export function partitionMigration(partitioning: Partitioning): string {
  const [code, ...more] = scalingBlocks('').filter((code) => code.includes(`partition by ${partitioning} `));
  if (code === undefined || more.length > 0) {
    throw new Error(`docs/scaling.md must have one block that partitions by ${partitioning}`);
  }
  return code;
}

/** The custom migration of the page that partitions the results by time. */
export function resultsByTimeMigration(): string {
  const [code, ...more] = scalingBlocks('').filter((code) => code.includes('partition by range '));
  if (code === undefined || more.length > 0) {
    throw new Error('docs/scaling.md must have one block that partitions the results by time');
  }
  return code;
}

/** What the page says to run every day once the results are partitioned by time. */
export function dailyUpkeep(): string {
  const [code, ...more] = scalingBlocks('on results by time');
  if (code === undefined || more.length > 0) throw new Error('docs/scaling.md must have one daily upkeep');
  return code;
}

/** What the page says may be run on partitioned tables, each in a transaction. */
export function laterChanges(): string[] {
  return scalingBlocks('on partitioned tables');
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
