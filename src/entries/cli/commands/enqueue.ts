import type { Command } from 'commander';
import type { Executor } from '../../../index.ts';
import { given, transact } from '../../../internal.ts';
import { durationMs, integer, jsonValue, laterTime, parsedJson, text } from '../arguments.ts';
import { configOf, definitionsOf } from '../configured.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { misused } from '../failure.ts';
import { nearest } from '../nearest.ts';

interface Flags {
  readonly key?: string;
  readonly delay?: number;
  readonly runAt?: Date;
  readonly priority?: number;
  readonly maxAttempts?: number;
  readonly queue?: string;
  readonly group?: string;
  readonly metadata?: unknown;
}

/** `enqueue`: one job, validated by its definition. */
export function addEnqueue(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('enqueue')
    .description('enqueue one job, validated by its definition in queue.config.ts')
    .argument('<kind>', 'the kind, as its definition names it')
    .argument('[payload]', 'the payload as JSON, or - to read it from stdin')
    .option('--key <key>', 'a unique key; refused while a live job has it', text)
    .option('--delay <duration>', 'when the job is due: after 90s, 15min, 2h or 3d', durationMs)
    .option('--run-at <time>', 'when the job is due: a time in ISO 8601', laterTime)
    .option('--priority <priority>', 'the priority, 0 to 9; smaller runs first', integer(0, 9))
    .option('--max-attempts <attempts>', 'the number of attempts', integer(1, 10_000))
    .option('-q, --queue <queue>', 'the queue, instead of the one in the definition', text)
    .option('--group <group>', 'the group, in a queue with groups', text)
    .option('--metadata <json>', 'a JSON object that is stored with the job', jsonValue);
  withProject<Flags>(command, enqueue, end);
}

async function enqueue({ project, args: [kind = '', json], flags, output }: Context<Flags>): Answer {
  const definitions = await definitionsOf(configOf(project, 'enqueue'));
  const job = definitions.get(kind);
  if (job === undefined) {
    const close = nearest(kind, [...definitions.keys()]);
    const hint = close === undefined ? '' : ` (did you mean ${close}?)`;
    throw misused(`queue.config.ts has no definition of '${kind}'${hint}`);
  }
  const payload = await payloadOf(json);
  const { key, delay, runAt, priority, maxAttempts, queue: name, group, metadata } = flags;
  if (
    metadata !== undefined &&
    (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
  )
    throw misused('--metadata must be a JSON object');
  const options = given({
    uniqueKey: key,
    delayMs: delay,
    runAt,
    priority,
    maxAttempts,
    queue: name,
    group,
    metadata: metadata as Record<string, unknown> | undefined, // It is an object.
  });
  // The definition validates the payload, whatever its type.
  const { db, queue } = project;
  const enqueue = (on: Executor) => queue.enqueue(on, job, payload as never, options as never);
  const { id, duplicate } = await enqueue(db).catch((error: unknown) => {
    if (!wantsTransaction(error)) throw error;
    return transact(db, enqueue);
  });
  if (output.json) await output.document({ id, duplicate });
  else await output.line(duplicate ? `Job ${id} already has this key.` : `Enqueued job ${id}.`);
  return undefined;
}

/** Whether the queue refuses what is no transaction. Without it none is begun: some drivers have none. */
function wantsTransaction(error: unknown): boolean {
  return error instanceof TypeError && error.message.includes('requires a transaction');
}

async function payloadOf(json: string | undefined): Promise<unknown> {
  if (json === undefined) return undefined;
  const refuse = (why: string) => misused(`The payload cannot be read. ${why}`);
  if (json !== '-') return parsedJson(json, refuse);
  const chunks: Uint8Array[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return parsedJson(Buffer.concat(chunks).toString('utf8'), refuse);
}
