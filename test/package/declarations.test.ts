import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import type {} from './global-setup.ts';
import { endOf } from './support/run-program.ts';
import { tools } from './support/tools.ts';
import { DRIZZLE_MAJORS, type DrizzleMajor } from './support/versions.ts';

const { projects } = inject('packed');
const compilers = Object.entries(tools.typescript);

/** The same app as an ES module and as CommonJS: the first reads `.d.ts`, the second `.d.cts`. */
const app = fileURLToPath(new URL('fixtures/types/app.ts', import.meta.url));

const options = {
  module: 'nodenext',
  target: 'es2023',
  lib: ['es2023'],
  types: ['node'],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  noEmit: true,
};

beforeAll(async () => {
  for (const major of DRIZZLE_MAJORS) {
    const folder = join(projects[major], 'types');
    await mkdir(folder, { recursive: true });
    await cp(app, join(folder, 'app.mts'));
    await cp(app, join(folder, 'app.cts'));
    for (const [name, change] of [
      ['nodenext', {}],
      ['bundler', { module: 'preserve', moduleResolution: 'bundler' }],
    ] as const) {
      const config = { compilerOptions: { ...options, ...change }, include: ['app.mts', 'app.cts'] };
      await writeFile(join(folder, `tsconfig.${name}.json`), JSON.stringify(config));
    }
  }
});

/** What the compiler complains about, one line each, apart by whose file it is in. */
async function compile(compiler: string, major: DrizzleMajor, config: string) {
  const folder = join(projects[major], 'types');
  const args = [compiler, '-p', `tsconfig.${config}.json`, '--pretty', 'false'];
  const { output } = await endOf(process.execPath, args, { cwd: folder });
  const errors = output.split('\n').filter((line) => /\berror TS\d+/.test(line));
  const isDrizzles = (line: string) => /^(\.\.\/)*node_modules\/drizzle-orm\//.test(line);
  return { drizzles: errors.filter(isDrizzles), ours: errors.filter((line) => !isDrizzles(line)) };
}

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s', (major) => {
  describe.each(compilers)('and TypeScript %s', (version, compiler) => {
    test.each(['nodenext', 'bundler'])(
      'the declarations are clean without skipLibCheck (%s)',
      async (config) => {
        const { ours, drizzles } = await compile(compiler, major, config);
        expect(ours).toEqual([]);
        const files = new Set(drizzles.map((line) => line.replace(/\(.*/, '')));
        console.log(
          `drizzle-orm ${major}, TypeScript ${version}, ${config}: drizzle-orm's own declarations have ` +
            `${drizzles.length} errors in ${files.size} files`,
        );
      },
    );
  });
});

test('a mistake in the app is found', async () => {
  const folder = join(projects['0.45'], 'types');
  await writeFile(
    join(folder, 'mistaken.mts'),
    "import { defineJob } from 'drizzle-queue';\ndefineJob(42);\n",
  );
  const config = { compilerOptions: options, include: ['mistaken.mts'] };
  await writeFile(join(folder, 'tsconfig.mistaken.json'), JSON.stringify(config));
  const { ours } = await compile(tools.typescript['5.9'], '0.45', 'mistaken');
  expect(ours).toEqual([expect.stringContaining('mistaken.mts(2,11): error TS2345')]);
});
