import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, test } from 'vitest';
import { createTestDatabase } from '../support/test-database.ts';
import type {} from './global-setup.ts';
import { run } from './support/run-program.ts';
import { tools } from './support/tools.ts';
import { DRIZZLE_MAJORS } from './support/versions.ts';

const { projects } = inject('packed');
const fixture = (name: string) => fileURLToPath(new URL(`fixtures/two-copies/${name}`, import.meta.url));

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s', (major) => {
  test('a process that has the ES modules and the CommonJS files at once', async () => {
    const database = await createTestDatabase();
    try {
      await cp(fixture('two-copies.mjs'), join(projects[major], 'two-copies.mjs'));
      const env = { DATABASE_URL: database.url };
      const said = await run(process.execPath, ['two-copies.mjs'], { cwd: projects[major], env });
      const jobs = { snoozed: 'scheduled', cancelled: 'cancelled', refused: 'discarded', done: 'completed' };
      expect(JSON.parse(said)).toEqual({
        areTwoCopies: true,
        instances: {
          sameClass: true,
          base: true,
          otherClass: false,
          appsOwnOfOther: true,
          appsOwn: false,
          plainError: false,
        },
        // The definitions, handlers and queue of one, the worker of the other.
        'worker of the ES modules': jobs,
        'worker of the CommonJS files': jobs,
      });
    } finally {
      await database.drop();
    }
  });

  test('an app whose drizzle-orm is another copy than that of the library, as pnpm installs it', async () => {
    const app = await mkdtemp(join(tmpdir(), 'drizzle-queue-two-drizzles-'));
    try {
      const installed = join(projects[major], 'node_modules');
      await cp(installed, join(app, 'node_modules'), { recursive: true, verbatimSymlinks: true });
      const ours = join(app, 'node_modules/drizzle-queue/node_modules/drizzle-orm');
      await cp(join(installed, 'drizzle-orm'), ours, { recursive: true });
      await cp(fixture('app.ts'), join(app, 'app.ts'));
      const compilerOptions = {
        ...{ module: 'nodenext', target: 'es2023', strict: true, skipLibCheck: true, noEmit: true },
        exactOptionalPropertyTypes: true,
      };
      await writeFile(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['app.ts'] }));
      await writeFile(join(app, 'package.json'), '{ "type": "module" }');
      const said = await run(process.execPath, [tools.typescript['7.0'], '--pretty', 'false'], { cwd: app });
      expect(said).toBe('');
    } finally {
      await rm(app, { recursive: true, force: true });
    }
  });
});
