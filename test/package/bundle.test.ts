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

/** What only workers need. */
const workers = /skip locked|no key update|createWorker|silentMs|pollInterval|\blisten\b|node:/i;

describe.each([
  ['esbuild', byEsbuild],
  ['rolldown', byRolldown],
])('a bundle by %s', (_, bundle) => {
  test('of createQueue and defineJob has no worker code in it', async () => {
    const code = await bundle(projects['1.0'], enqueueOnly);
    expect(code).toContain('insert into');
    expect(workers.exec(code)?.[0]).toBeUndefined();
    // Every import that is left is Drizzle's.
    const imports = [...code.matchAll(/(?:from|import)\s*["']([^"']+)["']/g)].map(([, name]) => name);
    expect([...new Set(imports)].filter((name) => !name?.startsWith('drizzle-orm'))).toEqual([]);
  });

  test('of a worker has it', async () => {
    const code = await bundle(projects['1.0'], `export { createWorker } from 'drizzle-queue';`);
    for (const text of ['skip locked', 'no key update', 'silentMs', 'node:']) expect(code).toContain(text);
  });

  test('of the tables alone has nothing but them', async () => {
    const code = await bundle(projects['1.0'], `export * from 'drizzle-queue/schema';`);
    expect(code).toContain('queue_results');
    expect(code).not.toMatch(/insert into|QueueError|InvalidPayload/);
  });

  test('of an error alone has no statement in it', async () => {
    const code = await bundle(projects['1.0'], `export { NonRetryableError } from 'drizzle-queue';`);
    expect(code).toContain('NonRetryableError');
    expect(code).not.toMatch(/insert into|select |skip locked/);
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
