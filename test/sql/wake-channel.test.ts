import { pgSchema } from 'drizzle-orm/pg-core';
import { expect, test } from 'vitest';
import { createQueueTables } from '../../src/core/schema/create-queue-tables.ts';
import { wakeChannel } from '../../src/core/sql/wake-channel.ts';

const channelIn = (schema: string, prefix = 'queue_') =>
  wakeChannel(createQueueTables({ schema: pgSchema(schema), prefix }));
const channelOf = (prefix: string) => wakeChannel(createQueueTables({ prefix }));

// Pinned: processes of two versions of the library must find the same channel.
test('the channel of a table stays what it is', () => {
  expect(wakeChannel(createQueueTables())).toBe('queue_wake_queue_jobs');
  expect(channelIn('jobs')).toBe('queue_wakes_jobs_queue_jobs_0aa66998170e86a5');
});

test('two tables have two channels, of characters that every driver takes and at most 63 bytes', () => {
  const long = 'x'.repeat(60);
  const channels = [
    wakeChannel(createQueueTables()),
    channelOf('queue_2_'),
    channelOf(`${'y'.repeat(39)}_`),
    channelIn('jobs'),
    channelIn('Jobs'),
    channelIn('a', 'b_c_'),
    channelIn('a_b', 'c_'),
    channelIn('ü"-'),
    channelIn('ü"_'),
    channelIn(`${long}1`),
    channelIn(`${long}2`),
  ];
  for (const channel of channels) expect(channel).toMatch(/^[a-z][a-z0-9_]{0,62}$/);
  expect(new Set(channels).size).toBe(channels.length);
});
