import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import * as tables from 'drizzle-queue/schema';
import { MAX_PRIORITY } from '../../../src/core/job/limits.ts';
import { claimJobsQuery } from '../../../src/core/queries/claim/claim-jobs.ts';
import { finishJobsQuery } from '../../../src/core/queries/settle/finish-jobs.ts';

/** How many clients: as many as the bare loop has connections. */
const CLIENTS = 2;

export function hasPgbench(): boolean {
  return spawnSync('pgbench', ['--version']).status === 0;
}

/** Claims and deletes `jobs` jobs in batches; answers jobs per second as pgbench counts them. */
export async function runPgbench(url: string, jobs: number, batch: number): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-pgbench-'));
  try {
    const { script, variables } = statements(batch);
    await writeFile(join(directory, 'script.sql'), script);
    const { stdout } = await promisify(execFile)('pgbench', [
      ...['-n', '-M', 'prepared', '-c', String(CLIENTS), '-j', '1'],
      ...['-t', String(Math.floor(jobs / batch / CLIENTS)), '-f', join(directory, 'script.sql')],
      ...Object.entries(variables).flatMap(([name, value]) => ['-D', `${name}=${value}`]),
      url,
    ]);
    const tps = /tps = ([\d.]+)/.exec(stdout)?.[1];
    if (tps === undefined) throw new Error(`pgbench has told no figure: ${stdout}`);
    return Number(tps) * batch;
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** The library's two statements as a pgbench script: what the claim returns goes into variables that the finish reads. */
function statements(batch: number): { script: string; variables: Record<string, string> } {
  const held = { queue: 'bench', workerId: 1 };
  const bands = Array.from({ length: MAX_PRIORITY + 1 }, (_, priority) => ({
    priority,
    floorMs: Number.NEGATIVE_INFINITY,
  }));
  const transition = {
    type: 'finish',
    state: 'completed',
    output: null,
    error: null,
    keepResult: false,
  } as const;
  const claim = withVariables(
    'c',
    claimJobsQuery(tables, { ...held, kinds: ['bench'], bands, limit: batch, fromGoneWorkers: false }),
  );
  // Numbers that stand nowhere else, so that their places are found again.
  const finish = withVariables('f', finishJobsQuery(tables, held, [{ id: 1234, fence: 5678, transition }]));
  const bandsName = nameOf(claim.variables, (value) => value.includes('"floor"'));
  const idsName = nameOf(finish.variables, (value) => value === '{1234}');
  const fencesName = nameOf(finish.variables, (value) => value === '{5678}');
  // A statement that changes rows must stand at the top: only what it returns becomes a CTE.
  const answerAt = claim.text.lastIndexOf('\n    select ');
  if (answerAt < 0) throw new Error('The claim does not end in a select any more');
  const script = `
    ${claim.text.slice(0, answerAt)},
    answer as (${claim.text.slice(answerAt)})
    select coalesce(array_agg(id)::text, '{}') as ${idsName}, coalesce(array_agg(fence)::text, '{}') as ${fencesName},
      coalesce((
        select json_agg(json_build_object('priority', p, 'floor', (
          select coalesce((to_timestamp(floor(min(run_at) / 1000)) at time zone 'UTC')::text || 'Z', '-infinity')
          from answer where priority = p)))::text
        from generate_series(0, ${MAX_PRIORITY}) as p), '[]') as ${bandsName}
    from answer \\gset
    ${finish.text};`;
  return { script, variables: { ...claim.variables, ...finish.variables } };
}

/** The query's text with a pgbench variable for each parameter. */
function withVariables(prefix: string, query: SQL): { text: string; variables: Record<string, string> } {
  const { sql, params } = new PgDialect().sqlToQuery(query);
  const variables = Object.fromEntries(
    params.map((value, index) => [`${prefix}${index + 1}`, String(value)]),
  );
  // pgbench takes a colon within a literal for the beginning of a variable, too.
  const text = sql.replaceAll(/'[^']*'/g, (literal) => literal.replaceAll(/:(?=\w)/g, "' || chr(58) || '"));
  return { text: text.replaceAll(/\$(\d+)/g, `:${prefix}$1`), variables };
}

function nameOf(variables: Readonly<Record<string, string>>, fits: (value: string) => boolean): string {
  const found = Object.entries(variables).find(([, value]) => fits(value));
  if (found === undefined) throw new Error('The statement has no such parameter any more');
  return found[0];
}
