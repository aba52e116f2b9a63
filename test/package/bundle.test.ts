import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, inject, test } from 'vitest';
import type {} from './global-setup.ts';
import { byEsbuild, byRolldown } from './support/bundlers.ts';

const { projects } = inject('packed');

/** What a web app needs that only enqueues. */
const enqueueOnly = `
  export { createQueue, defineJob } from 'drizzle-queue';
  export * from 'drizzle-queue/schema';`;

/** What only workers need: the claim's statement, and what a worker is made of. */
const WORKER_CODE = ['as band', 'worker_id not in', 'createWorker', 'pollIntervalMs', 'listen '];

/** What only the testing kit has. */
const KIT_CODE = ['pg_xact_status', 'runHandler', 'toHaveEnqueued', 'electric-sql'];

/** What only schedules need: their table, their statements, and croner. */
const SCHEDULE_CODE = ['passed_at', 'time_zone', 'CronPattern', 'Permission is hereby granted'];

describe.each([
  ['esbuild', byEsbuild],
  ['rolldown', byRolldown],
])('a bundle by %s', (_, bundle) => {
  test('of createQueue and defineJob has no worker code in it', async () => {
    const code = await bundle(projects['1.0'], enqueueOnly);
    expect(code).toContain('insert into');
    expect(WORKER_CODE.filter((text) => code.includes(text))).toEqual([]);
    expect(SCHEDULE_CODE.filter((text) => code.includes(text))).toEqual([]);
    expect(KIT_CODE.filter((text) => code.includes(text))).toEqual([]);
    // Every import that is left is Drizzle's. (The names of modules in our messages stand in single quotes.)
    const imports = [...code.matchAll(/\b(?:from|import|require)\s*\(?\s*"([^"]+)"/g)].map(
      ([, name]) => name,
    );
    expect(imports).toContain('drizzle-orm');
    expect(imports.filter((name) => !name?.startsWith('drizzle-orm') && !name?.startsWith('./'))).toEqual([]);
  });

  test('of an app that sets schedules has them, and no worker', async () => {
    const code = await bundle(
      projects['1.0'],
      `export { createQueue, defineSchedule, schedulesIn } from 'drizzle-queue';
      export * from 'drizzle-queue/schema/control';`,
    );
    expect(SCHEDULE_CODE.filter((text) => !code.includes(text))).toEqual([]);
    expect(WORKER_CODE.filter((text) => code.includes(text))).toEqual([]);
  });

  test('of a worker has it, and imports nothing that browsers and edge runtimes have not', async () => {
    const code = await bundle(projects['1.0'], `export { createWorker } from 'drizzle-queue';`);
    expect(WORKER_CODE.filter((text) => !code.includes(text))).toEqual([]);
    expect(code).not.toMatch(/\b(?:from|import|require)\s*\(?\s*["']node:/);
    expect(KIT_CODE.filter((text) => code.includes(text))).toEqual([]);
  });

  test('of shardOf has no worker in it, and that of createWorkers has', async () => {
    const code = await bundle(projects['1.0'], `export { shardOf } from 'drizzle-queue/shards';`);
    expect(code).toContain('a safe whole number or a bigint');
    expect(WORKER_CODE.filter((text) => code.includes(text))).toEqual([]);
    const workers = await bundle(projects['1.0'], `export { createWorkers } from 'drizzle-queue/shards';`);
    expect(WORKER_CODE.filter((text) => !workers.includes(text))).toEqual([]);
    // Nor has a worker of one database what several need.
    const one = await bundle(projects['1.0'], `export { createWorker } from 'drizzle-queue';`);
    expect(one).not.toContain('have the same queue');
  });

  test('of the testing kit has it', async () => {
    const code = await bundle(projects['1.0'], `export * from 'drizzle-queue/testing';`);
    expect(KIT_CODE.filter((text) => !code.includes(text))).toEqual([]);
  });

  test('of the tables alone has nothing but them', async () => {
    const code = await bundle(projects['1.0'], `export * from 'drizzle-queue/schema';`);
    expect(code).toContain('finished_at');
    expect(code).not.toMatch(/insert into|QueueError|InvalidPayload/);
  });

  test('of an error alone is small', async () => {
    const code = await bundle(projects['1.0'], `export { NonRetryableError } from 'drizzle-queue';`);
    expect(code).toContain('NonRetryableError');
    // esbuild loads what a chunk that comes later shares with it, too.
    expect(code.length).toBeLessThan(bundle === byEsbuild ? 43_000 : 5_000);
  });
});

test('an enqueue-only web app takes no more than the README says', async () => {
  const code = await byEsbuild(projects['1.0'], enqueueOnly);
  const kilobytes = code.length / 1_000;
  const gzipped = gzipSync(code).length / 1_000;
  console.log(`enqueue-only: ${kilobytes.toFixed(1)} kB minified, ${gzipped.toFixed(1)} kB with gzip`);
  const said = /(\d+) kB minified \((\d+) kB with gzip\)/.exec(await readFile('README.md', 'utf8'));
  const [, saidKilobytes, saidGzipped] = said?.map(Number) ?? [];
  expect(kilobytes).toBeLessThanOrEqual(saidKilobytes ?? 0);
  expect(gzipped).toBeLessThanOrEqual(saidGzipped ?? 0);
  // A README that says far too much would bound nothing.
  expect(kilobytes).toBeGreaterThan((saidKilobytes ?? 0) * 0.85);
});
