import { sql } from 'drizzle-orm';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { pooledSender } from '../../src/core/drivers/send-by-pool.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();

const everyType = sql`
  select '2026-01-02 03:04:05+00'::timestamptz as a, '2026-01-02 03:04:05'::timestamp as b, '2026-01-02'::date as c,
    '1 day'::interval as d, array['2026-01-02'::date] as e, array[1.5] as f, array[now()] is null as g,
    1::int8 as h, 1.5::numeric as i, '{"a": 1}'::jsonb as j, true as k, 'text' as l, null::timestamptz as m`;

test('a statement on a pool of node-postgres answers as Drizzle has it: dates are texts, which cost nothing to read', async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  onTestFinished(() => pool.end());
  const answer = (await pooledSender(pool)?.send(everyType, false).answer) as { rows: unknown[] };
  expect(answer.rows).toEqual([
    {
      a: expect.stringMatching(/^2026-01-0\d /),
      b: '2026-01-02 03:04:05',
      c: '2026-01-02',
      d: '1 day',
      e: '{2026-01-02}',
      f: '{1.5}',
      g: false,
      h: '1',
      i: '1.5',
      j: { a: 1 },
      k: true,
      l: 'text',
      m: null,
    },
  ]);
  // Connections that the app uses are left as they are.
  expect((await pool.query('select now() as now')).rows[0].now).toBeInstanceOf(Date);
});
