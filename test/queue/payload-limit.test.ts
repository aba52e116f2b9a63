import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  InvalidPayloadError,
  unvalidated,
} from 'drizzle-queue';
import { describe, expect, test } from 'vitest';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { nextEvent } from '../worker/next-event.ts';
import { untouched } from './support/executors.ts';

const database = useTestDatabase();
const queue = createQueue();
const anything = defineJob('anything', { payload: unvalidated<unknown>() });
const MEGABYTE = 1024 * 1024;

/** A text whose JSON is so many bytes long, the quotes included. */
const textOf = (bytes: number) => 'x'.repeat(bytes - 2);

describe('maxPayloadBytes', () => {
  test('is 1 MB of the JSON text, and one byte more is refused before anything is sent', async () => {
    const { id } = await queue.enqueue(database.db, anything, textOf(MEGABYTE));
    expect(await queue.find(database.db, anything, id)).toMatchObject({ payload: textOf(MEGABYTE) });
    const tooLarge = textOf(MEGABYTE + 1);
    for (const refused of [
      queue.enqueue(untouched(), anything, tooLarge),
      queue.enqueueMany(untouched(), anything, [{ payload: 1 }, { payload: tooLarge }]),
    ]) {
      await expect(refused).rejects.toBeInstanceOf(InvalidPayloadError);
      await expect(refused).rejects.toThrow(
        "The payload of 'anything' is invalid: 1048577 bytes of JSON are more than the 1048576 of createQueue({ maxPayloadBytes }); " +
          'store it elsewhere and enqueue a reference, or raise that limit',
      );
      await expect(refused).rejects.toMatchObject({ kind: 'anything', issues: [{ path: '' }] });
    }
  });

  test.each([
    ['two bytes a character', 'é'],
    ['three', '漢'],
    ['four, which are two in JavaScript', '😀'],
    ['escaped', '\n'],
    ['escaped at length', '\u0001'],
  ])('counts bytes, not characters: %s', async (_, character) => {
    const payload = character.repeat(100);
    const bytes = Buffer.byteLength(JSON.stringify(payload));
    const exact = createQueue({ maxPayloadBytes: bytes });
    await exact.enqueue(database.db, anything, payload);
    await expect(exact.enqueue(untouched(), anything, `${payload}x`)).rejects.toThrow(
      `${bytes + 1} bytes of JSON`,
    );
  });

  test('holds for what toJSON makes of it', async () => {
    const small = createQueue({ maxPayloadBytes: 10 });
    await small.enqueue(database.db, anything, { large: textOf(100), toJSON: () => 'small' });
    await expect(small.enqueue(untouched(), anything, { toJSON: () => textOf(11) })).rejects.toThrow(
      '11 bytes',
    );
  });

  test('is asked before the schema is', async () => {
    const asked: unknown[] = [];
    const asking = defineJob('asking', {
      payload: {
        '~standard': {
          version: 1,
          vendor: 'test',
          validate: (value: unknown) => {
            asked.push(value);
            return { value };
          },
        },
      },
    });
    await expect(queue.enqueue(untouched(), asking, textOf(2 * MEGABYTE))).rejects.toThrow(
      InvalidPayloadError,
    );
    expect(asked).toEqual([]);
  });

  test('holds for metadata too, each by itself', async () => {
    const small = createQueue({ maxPayloadBytes: 20 });
    await small.enqueue(database.db, anything, textOf(20), { metadata: { a: textOf(14) } });
    const refused = small.enqueue(untouched(), anything, 1, { metadata: { a: textOf(15) } });
    await expect(refused).rejects.toMatchObject({
      name: 'InvalidPayloadError',
      issues: [{ path: 'metadata' }],
    });
    const plain = defineJob('plain');
    const select = database.db.select({ n: sql<number>`1`.as('n') }).from(sql`generate_series(1, 1)`);
    await expect(
      small.enqueueFrom(untouched(), plain, select, { metadata: { a: textOf(15) } }),
    ).rejects.toThrow('metadata: 21 bytes');
  });

  test('does not measure the rows of enqueueFrom', async () => {
    const small = createQueue({ maxPayloadBytes: 10 });
    const select = database.db
      .select({ text: sql<string>`repeat('x', 100)`.as('text') })
      .from(sql`generate_series(1, 2)`);
    expect(await small.enqueueFrom(database.db, anything, select)).toEqual({ enqueued: 2, duplicates: 0 });
  });

  test('leaves the caller’s transaction usable', async () => {
    const id = await database.db.transaction(async (tx) => {
      await expect(queue.enqueue(tx, anything, textOf(2 * MEGABYTE))).rejects.toThrow(InvalidPayloadError);
      return (await queue.enqueue(tx, anything, 'after it')).id;
    });
    expect(await queue.find(database.db, id)).toMatchObject({ payload: 'after it' });
  });

  test.each([
    0,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    100 * MEGABYTE + 1,
    '1MB' as unknown as number,
  ])('cannot be %s', (maxPayloadBytes) => {
    expect(() => createQueue({ maxPayloadBytes })).toThrow(
      /^createQueue: maxPayloadBytes must be a whole number from 1 to 104857600, got /,
    );
  });
});

test('an output may be larger: the work is done, and the job is not lost for it', async () => {
  const small = createQueue({ maxPayloadBytes: 100 });
  const output = textOf(2 * MEGABYTE);
  const work = defineJob('work');
  await emptyTables(database.client, 'queue_jobs');
  const { id } = await small.enqueue(database.db, work);
  const worker = createWorker(database.db, { queue: small, handlers: [handle(work, () => output)] });
  const completed = nextEvent(worker, 'completed');
  await worker.start();
  await completed;
  await worker.stop();
  expect(await small.find(database.db, id)).toMatchObject({ state: 'completed', output });
});
