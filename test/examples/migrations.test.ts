import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

test.each([
  ['shop', 'schema.ts'],
  ['nightly-report', 'schema.ts'],
  ['tenants', 'schema.ts'],
  ['shards', 'schema.ts'],
  ['order-fulfilment', 'schema.ts'],
  ['document-pipeline', 'schema.ts'],
  ['mailing', 'schema.ts'],
  ['agent-loop', 'schema.ts'],
  ['webhook-outbox', 'schema.ts'],
  ['image-pipeline', 'schema.ts'],
  ['email-digest', 'schema.ts'],
  ['title-generation', 'lib/schema.ts'],
])(
  'the migrations of the example %s are what drizzle-kit makes of its schema',
  { timeout: 240_000 },
  async (example, schema) => {
    const out = await mkdtemp(join(tmpdir(), 'drizzle-queue-example-'));
    onTestFinished(() => rm(out, { recursive: true }));
    await cp(`examples/${example}/drizzle`, out, { recursive: true });
    const { stdout } = await promisify(execFile)(process.execPath, [
      'node_modules/drizzle-kit/bin.cjs',
      'generate',
      '--dialect=postgresql',
      `--schema=examples/${example}/${schema}`,
      // It takes no absolute path.
      `--out=${relative('', out)}`,
    ]);
    expect(stdout).toContain('No schema changes');
  },
);
