import {
  createQueue,
  defineJob,
  defineSignal,
  drain,
  handlersFor,
  InvalidSignalError,
  InvalidTokenError,
  type Queue,
  runNext,
  type Step,
  type TokenSecret,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { runHandler } from 'drizzle-queue/testing';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { Tokens } from '../../src/features/workflows/tokens/tokens.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase({ max: 10 });
const OLD = 'an old secret of at least 32 bytes';
const NEW = new TextEncoder().encode('a new secret of at least 32 bytes!');
const queueWith = (secrets?: readonly TokenSecret[]) =>
  createQueue({ tables, workflows: workflowsIn(workflowTables, secrets === undefined ? {} : { secrets }) });
const queue = queueWith([OLD]);
const { workflows } = queue;
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', { queue: 'q', output: unvalidated<unknown>() });
const approval = defineSignal('approval', z.object({ ok: z.boolean() }));
const bare = defineSignal('bare');
const value = { ok: true };

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

type Run = (step: Step<typeof database.db>) => Promise<unknown>;

/** A job that waits, with what its handler has said before. */
async function waiting<T>(run: (step: Step<typeof database.db>) => Promise<T>, of: Queue = queue) {
  const { id } = await queue.enqueue(database.db, work);
  const said: T[] = [];
  const handlers = [
    handle(work, async ({ step }) => {
      said.push(await run(step));
      return await step.waitForSignal(approval);
    }),
  ];
  const again = () => runNext(database.db, { queue: of as typeof queue, handlers, id });
  expect(await again()).toMatchObject({ outcome: 'waiting' });
  return { id, said, token: String(said[0]), again };
}

const one: Run = (step) => step.token(approval);

describe('a token', () => {
  test('sends its signal once, and can stand in a link', async () => {
    const { id, token, again } = await waiting(one);
    expect(new URL(`https://shop.test/?token=${token}`).searchParams.get('token')).toBe(token);
    expect(token).toMatch(/^[\w-]+\.[\w-]+$/);
    expect(await workflows.redeem(database.db, approval, token, value)).toBe('sent');
    expect(await workflows.redeem(database.db, approval, token, { ok: false })).toBe('duplicate');
    expect(await again()).toMatchObject({ outcome: 'completed' });
    expect(await queue.find(database.db, id)).toMatchObject({ output: value });
    expect(await workflows.redeem(database.db, approval, token, value)).toBe('gone');
  });

  test('is redeemed by one of two at the same time, and not if that rolls back', async () => {
    const { token } = await waiting(one);
    const rolledBack = database.db.transaction(async (tx) => {
      expect(await workflows.redeem(tx, approval, token, value)).toBe('sent');
      tx.rollback();
    });
    await expect(rolledBack).rejects.toThrow();
    const ends = await Promise.all(
      Array.from({ length: 5 }, () => workflows.redeem(database.db, approval, token, value)),
    );
    expect(ends.sort()).toEqual(['duplicate', 'duplicate', 'duplicate', 'duplicate', 'sent']);
  });

  test('is the same in each run, in the database only as a time, and not that of another job', async () => {
    const run: Run = async (step) => [
      await step.token(approval),
      await step.token(approval, { expiresInMs: 60_000, name: 'second' }),
    ];
    const first = await waiting(run);
    await database.client`update queue_jobs set run_at = statement_timestamp()`;
    await drain(database.db, {
      queue,
      handlers: [handle(work, async ({ step }) => void first.said.push(await run(step)))],
      log: false,
      deadlineMs: 20_000,
    });
    const second = await waiting(run);
    expect(first.said).toHaveLength(2);
    expect(first.said[0]).toEqual(first.said[1]);
    expect(new Set([...(first.said[0] as string[]), ...(second.said[0] as string[])]).size).toBe(4);
    expect(await workflows.steps(database.db, first.id)).toMatchObject([
      { name: 'second', kind: 'run', output: expect.any(Number) },
      { name: 'approval' },
    ]);
  });

  test('with another name is redeemed by itself', async () => {
    const { said } = await waiting(async (step) => [
      await step.token(approval, { name: 'Ada' }),
      await step.token(approval, { name: 'Bob' }),
    ]);
    for (const token of said[0] ?? []) {
      expect(await workflows.redeem(database.db, approval, token, value)).toBe('sent');
      expect(await workflows.redeem(database.db, approval, token, value)).toBe('duplicate');
    }
  });

  test.each([{}, { expiresInMs: 60_000 }])('of a signal with the longest name, with %j', async (options) => {
    const long = defineSignal('s'.repeat(200), unvalidated<typeof value>());
    const { token } = await waiting((step) => step.token(long, options));
    expect(await workflows.redeem(database.db, long, token, value)).toBe('sent');
  });

  test('that has expired sends nothing', async () => {
    const { id, token } = await waiting((step) => step.token(approval, { expiresInMs: 60_000 }));
    const tokens = new Tokens([OLD]);
    const claims = await tokens.read(token);
    expect(claims).toMatchObject({ jobId: id, signal: 'approval', name: 'token: approval' });
    const late = await tokens.make({ ...claims, expiresAt: Date.now() - 1 });
    expect(await workflows.redeem(database.db, approval, late, value)).toBe('expired');
    expect(await workflows.redeem(database.db, approval, token, value)).toBe('sent');
  });

  test.each([-3_600_000, 3_600_000])(
    'expires by the clock of the database, where that of the process is %i ms ahead',
    async (aheadMs) => {
      const { now } = Date;
      onTestFinished(() => {
        Date.now = now;
      });
      Date.now = () => now() + aheadMs;
      const { token } = await waiting((step) => step.token(approval, { expiresInMs: 600_000 }));
      const { expiresAt = 0 } = await new Tokens([OLD]).read(token);
      expect(Math.abs(expiresAt - now() - 600_000)).toBeLessThan(300_000);
      expect(await workflows.redeem(database.db, approval, token, value)).toBe('sent');
    },
  );

  test('of a fork is its own', async () => {
    const { id, token } = await waiting((step) => step.token(approval, { expiresInMs: 60_000 }));
    const forked = await workflows.fork(database.db, id, { from: 'approval' });
    const tokens = new Tokens([OLD]);
    const claims = await tokens.read(token);
    let made = '';
    const handlers = [
      handle(work, async ({ step }) => {
        made = await step.token(approval, { expiresInMs: 60_000 });
      }),
    ];
    await runNext(database.db, { queue, handlers, id: forked.id });
    expect(await tokens.read(made)).toEqual({ ...claims, jobId: forked.id });
  });

  test('needs a value that its signal accepts', async () => {
    const { token, said } = await waiting(async (step) => {
      await step.run('bare', () => step.token(bare));
      return await step.token(approval);
    });
    expect(said).toEqual([token]);
    // @ts-expect-error: the signal says of what type it is
    const wrong = () => workflows.redeem(database.db, approval, token, { ok: 1 });
    await expect(wrong()).rejects.toThrow(InvalidSignalError);
    // @ts-expect-error: and that there is one
    const none = () => workflows.redeem(database.db, approval, token);
    await expect(none()).rejects.toThrow(InvalidSignalError);
    expect(await workflows.redeem(database.db, approval, token, value)).toBe('sent');
  });
});

describe('what is refused', () => {
  const reasonOf = async (token: string | null | undefined, of = queue) =>
    await of.workflows
      .redeem(database.db, approval, token, value)
      .catch((error: unknown) => (error instanceof InvalidTokenError ? error.reason : error));

  test('anything but a token, of this signal, signed with a secret', async () => {
    const { token, said } = await waiting(async (step) => await step.token(approval));
    expect(said).toHaveLength(1);
    const [claims = '', signature = ''] = token.split('.');
    const changed = (text: string) => `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`;
    for (const text of [
      null,
      undefined,
      '',
      'a',
      'a.b',
      `${token}.`,
      `${token}=`,
      `.${signature}`,
      'x'.repeat(9_999),
    ])
      expect(await reasonOf(text), String(text)).toBe('malformed');
    expect(await reasonOf(`${changed(claims)}.${signature}`)).toBe('signature');
    expect(await reasonOf(`${claims}.${changed(signature)}`)).toBe('signature');
    expect(await reasonOf(`${claims}.${signature.slice(0, -3)}`)).not.toBe('sent');
    expect(await reasonOf(token, queueWith([NEW]))).toBe('signature');
    const other = await new Tokens([OLD]).make({ jobId: 1, signal: 'bare', name: 'x', expiresAt: undefined });
    expect(await reasonOf(other)).toBe('signal');
    expect(await reasonOf(token)).toBe('sent');
  });

  test('nothing that an older secret has signed, as long as that is there', async () => {
    const { token } = await waiting(one);
    const rotated = queueWith([NEW, OLD]);
    const next = await waiting(one, rotated);
    expect(await reasonOf(next.token, queue)).toBe('signature');
    expect(await reasonOf(next.token, rotated)).toBe('sent');
    expect(await reasonOf(token, rotated)).toBe('sent');
  });

  test('both sides without a secret, by an error that names the option', async () => {
    const none = queueWith();
    const wanted = 'needs a secret: workflowsIn(tables, { secrets:';
    await expect(none.workflows.redeem(database.db, approval, 'a.b', value)).rejects.toThrow(
      `redeem ${wanted}`,
    );
    const run = await runHandler(work, { queue: none }, async ({ step }) => await step.token(approval));
    expect(run.error).toMatchObject({ message: expect.stringContaining(`step.token ${wanted}`) });
  });

  test('secrets that are none, or too short, without telling them', () => {
    const message = (secrets: unknown) => {
      try {
        workflowsIn(workflowTables, { secrets: secrets as string[] });
        return 'no error';
      } catch (error) {
        return String(error);
      }
    };
    expect(message([])).toContain('secrets must be an array of at least one');
    expect(message('a'.repeat(32))).toContain('secrets must be an array');
    expect(message([OLD, undefined])).toContain('secrets[1] must be a text or a Uint8Array');
    expect(message(['hunter2'])).toBe(
      'RangeError: workflowsIn: secrets[0] is 7 bytes long; it must have at least 32. Make one with `openssl rand -base64 32`',
    );
  });
});

test('runHandler signs as the queue does', async () => {
  const run = await runHandler(work, { queue }, async ({ step }) => [
    await step.token(approval),
    await step.token(approval, { expiresInMs: 60_000, name: 'second' }),
  ]);
  expect(run.outcome).toBe('completed');
  const [first, second] = run.output as string[];
  const tokens = new Tokens([OLD]);
  expect(await tokens.read(first)).toEqual({
    jobId: 1,
    signal: 'approval',
    name: 'token: approval',
    expiresAt: undefined,
  });
  expect(await tokens.read(second)).toMatchObject({ name: 'second', expiresAt: expect.any(Number) });
  expect(run.steps).toMatchObject([{ name: 'second', kind: 'run' }]);
});
