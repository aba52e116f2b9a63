import type { JobDefinition, JobRecord } from '../../index.ts';
import { type Difference, printed } from './differences.ts';
import type { GivenExpectation } from './expected-job.ts';

/** A job, and in what it is not as expected. */
export interface ComparedJob {
  readonly record: JobRecord;
  readonly differences: readonly Difference[];
}

/** What a matcher has found. */
export interface Finding {
  readonly job: JobDefinition;
  readonly expected: GivenExpectation;
  /** The jobs of the kind. */
  readonly compared: readonly ComparedJob[];
  /** Where there are none, those of other kinds. */
  readonly others: readonly JobRecord[];
  readonly pass: boolean;
}

/** How many jobs a message shows. */
const SHOWN = 3;

/**
 * Why a matcher failed: what came nearest, and what differs. With `pass`, what there should not have been.
 */
export function explain(matcher: string, { job, expected, compared, others, pass }: Finding): string {
  const { times, withinMs, ignoreUnkept: _, ...values } = expected;
  const fitting = compared.filter(({ differences }) => differences.length === 0);
  const lines = Object.entries(values).map(([name, value]) => `  ${name}: ${printed(value)}`);
  const wanted = [
    `expect(db)${pass ? '.not' : ''}.${matcher}('${job.kind}')`,
    ...(lines.length === 0 ? [] : ['', `${pass ? 'Not expected' : 'Expected'}:`, ...lines]),
    ...(times === undefined ? [] : ['', `${pass ? 'Not expected' : 'Expected'} times: ${times}`]),
    ...(withinMs === undefined ? [] : [`Waited: ${withinMs} ms`]),
    '',
  ].join('\n');
  if (pass || (times !== undefined && fitting.length > times)) {
    const fit = fitting.length === 1 ? 'fits' : 'fit';
    return `${wanted}\n${counted(fitting.length)} of this kind ${fit}:${list(fitting)}`;
  }
  if (compared.length === 0) return `${wanted}\nNo job is of this kind${kindsOf(others)}`;
  const count = fitting.length === 0 ? 'none' : String(fitting.length);
  const nearest = compared
    .filter(({ differences }) => differences.length > 0)
    .sort((a, b) => a.differences.length - b.differences.length || b.record.id - a.record.id);
  if (nearest.length === 0) {
    const are = fitting.length === 1 ? 'is' : 'are';
    return `${wanted}\nOnly ${counted(fitting.length)} of this kind ${are} there:${list(fitting)}`;
  }
  const fit = fitting.length > 1 ? 'fit' : 'fits';
  const few = `Of ${counted(compared.length)} of this kind ${count} ${fit}.`;
  return `${wanted}\n${few} The closest:${list(nearest)}`;
}

/** Why nothing can be said, and how to say that it does not matter. */
export function explainUnkept(matcher: string, { kind, keepResult }: JobDefinition): string {
  const left =
    keepResult === false
      ? `A completed job of '${kind}' leaves no trace (keepResult: false), and one may have run`
      : `A completed job of '${kind}' leaves no payload to compare (keepResult: 'outcome'), and one has run`;
  return (
    `${matcher}('${kind}'): the number of jobs is unknown. ${left}. ` +
    'Assert before the jobs run, or ignore those: { ignoreUnkept: true }'
  );
}

function list(jobs: readonly ComparedJob[]): string {
  const more = jobs.length > SHOWN ? `\n  … and ${jobs.length - SHOWN} more` : '';
  return jobs.slice(0, SHOWN).map(describe).join('').concat(more);
}

function describe({ record, differences }: ComparedJob): string {
  const head = `\n  job ${record.id} (${record.state})`;
  if (differences.length === 0) return `${head}: payload ${printed(record.payload)}`;
  return `${head}${differences
    .map(({ path, actual, expected }) => `\n    ${path}: ${printed(actual)}, expected ${printed(expected)}`)
    .join('')}${reasonOf(record, differences)}`;
}

/** Why a job is in another state than expected: its last error, and what such errors often come from. */
function reasonOf({ state, errors }: JobRecord, differences: readonly Difference[]): string {
  const last = errors.at(-1);
  if (last === undefined || !differences.some(({ path }) => path === 'state')) return '';
  const error = `\n    its last error, at attempt ${last.attempt}: ${last.name}: ${last.message}`;
  if (state === 'cancelled') return error;
  return `${error}\n    (a handler sees what a test has written in its transaction only through ctx.db)`;
}

function kindsOf(records: readonly JobRecord[]): string {
  if (records.length === 0) return ', nor of any other.';
  const counts = new Map<string, number>();
  for (const { kind } of records) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return `. There are ${[...counts].map(([kind, count]) => `${count} × '${kind}'`).join(', ')}.`;
}

function counted(count: number): string {
  return count === 1 ? '1 job' : `${count} jobs`;
}
