import { cp, mkdir, readdir, writeFile } from 'node:fs/promises';
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
  skipLibCheck: true,
  noEmit: true,
};

/** Writes a compiler's configuration into the folder `types` of a project. */
async function configure(major: DrizzleMajor, name: string, include: string[], change: object = {}) {
  const config = { compilerOptions: { ...options, ...change }, include };
  await writeFile(join(projects[major], 'types', `tsconfig.${name}.json`), JSON.stringify(config));
}

beforeAll(async () => {
  for (const major of DRIZZLE_MAJORS) {
    const folder = join(projects[major], 'types');
    await mkdir(folder, { recursive: true });
    await cp(app, join(folder, 'app.mts'));
    await cp(app, join(folder, 'app.cts'));
    await configure(major, 'app', ['app.mts', 'app.cts']);
    await configure(major, 'bundler', ['app.mts'], { module: 'preserve', moduleResolution: 'bundler' });
    // What the older templates of Nest have; TypeScript 7 has it no more.
    await cp(app, join(folder, 'app.ts'));
    await configure(major, 'node10', ['app.ts'], { module: 'commonjs', moduleResolution: 'node10' });
    await configure(major, 'everything', ['app.mts', 'app.cts'], { skipLibCheck: false });
    // Declarations that are a project's own sources are checked in full, and those of its packages are not.
    const dist = join(projects[major], 'node_modules/drizzle-queue/dist');
    for (const [from, to, type] of [
      ['.d.ts', '.ts', 'module'],
      ['.d.cts', '.cts', 'commonjs'],
    ] as const) {
      const own = join(folder, `declarations-${type}`);
      await mkdir(own, { recursive: true });
      await writeFile(join(own, 'package.json'), JSON.stringify({ type }));
      for (const file of await readdir(dist, { recursive: true })) {
        if (file.endsWith(from)) await cp(join(dist, file), join(own, file.replace(from, to)));
      }
    }
    await configure(major, 'declarations', ['declarations-module', 'declarations-commonjs']);
  }
});

/** What the compiler complains about, one line each. */
async function compile(compiler: string, major: DrizzleMajor, config: string): Promise<string[]> {
  const args = [compiler, '-p', `tsconfig.${config}.json`, '--pretty', 'false'];
  const { code, output } = await endOf(process.execPath, args, { cwd: join(projects[major], 'types') });
  const errors = output.split('\n').filter((line) => /\berror TS\d+/.test(line));
  if (code !== 0 && errors.length === 0) throw new Error(`the compiler ended with ${code}:\n${output}`);
  return errors;
}

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s', (major) => {
  describe.each(compilers)('and TypeScript %s', (_, compiler) => {
    test('every declaration of both module systems is clean', async () => {
      expect(await compile(compiler, major, 'declarations')).toEqual([]);
    });

    test('an app has exact types, as an ES module and as CommonJS', async () => {
      expect(await compile(compiler, major, 'app')).toEqual([]);
    });

    test.skipIf(compiler === tools.typescript['7.0'])(
      "an app has exact types with moduleResolution 'node10', which reads no exports (gone in TypeScript 7)",
      async () => {
        expect(await compile(compiler, major, 'node10')).toEqual([]);
      },
    );

    test('an app has exact types for a bundler', async () => {
      expect(await compile(compiler, major, 'bundler')).toEqual([]);
    });
  });

  // The compiler then checks all that drizzle-orm declares, which takes the older one longer than everything above.
  test.each(compilers.filter(([version]) => version !== '5.9' || process.env.CHECK_EVERYTHING !== undefined))(
    "without skipLibCheck TypeScript %s finds errors of drizzle-orm's own, and no others",
    async (version, compiler) => {
      const errors = await compile(compiler, major, 'everything');
      const isDrizzles = (line: string) => /^(\.\.\/)*node_modules\/drizzle-orm\//.test(line);
      expect(errors.filter((line) => !isDrizzles(line))).toEqual([]);
      const files = new Set(errors.map((line) => line.replace(/\(.*/, '')));
      console.info(
        `TypeScript ${version}, drizzle-orm ${major}: ${errors.length} errors in ${files.size} of its files`,
      );
    },
  );
});

test.each(compilers)('TypeScript %s finds mistakes, in an app and in a declaration', async (_, compiler) => {
  const folder = join(projects['0.45'], 'types');
  await writeFile(
    join(folder, 'app-mistaken.mts'),
    "import { defineJob } from 'drizzle-queue';\ndefineJob(42);\n",
  );
  await writeFile(join(folder, 'declaration-mistaken.ts'), 'export declare function f(): NoSuchType;\n');
  await configure('0.45', 'mistaken', ['app-mistaken.mts', 'declaration-mistaken.ts']);
  expect(await compile(compiler, '0.45', 'mistaken')).toEqual([
    expect.stringContaining('app-mistaken.mts(2,11): error TS2345'),
    expect.stringContaining('declaration-mistaken.ts(1,30): error TS2304'),
  ]);
});
