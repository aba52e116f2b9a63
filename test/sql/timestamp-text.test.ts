import { expect, test } from 'vitest';
import { timestampText } from '../../src/core/sql/timestamp-text.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();

test.each([
  0,
  Date.parse('2026-11-28T12:00:00.123Z'),
  Date.parse('0001-01-01T00:00:00Z'),
  Date.parse('0000-12-31T23:59:59.999Z'),
  Date.parse('-000043-03-15T12:00:00.5Z'),
  Date.UTC(-4712, 0, 1),
  Date.parse('9999-12-31T23:59:59.999Z'),
  Date.parse('+010000-01-01T00:00:00.001Z'),
  8.64e15,
])('%s milliseconds are the same in PostgreSQL', async (ms) => {
  const [row] = await database.client<{ ms: number }[]>`
    select (extract(epoch from ${timestampText(ms)}::text::timestamptz) * 1000)::float8 as ms`;
  expect(row?.ms).toBe(ms);
});

test.each([
  [Number.NEGATIVE_INFINITY, '-infinity'],
  [Number.NaN, '-infinity'],
  [Date.UTC(-4712, 0, 1) - 1, '-infinity'],
  [-8.64e15, '-infinity'],
  [Number.POSITIVE_INFINITY, 'infinity'],
  [8.65e15, 'infinity'],
])('%s is %s', (ms, text) => {
  expect(timestampText(ms)).toBe(text);
});
