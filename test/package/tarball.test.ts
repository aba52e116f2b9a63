import { readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import type {} from './global-setup.ts';
import { endOf, run } from './support/run-program.ts';
import { tools } from './support/tools.ts';

const { tarball, files, projects } = inject('packed');
const cwd = projects['0.45'];

describe('the tarball', () => {
  test('holds the built library and its documentation, and nothing of its tests, sources and examples', () => {
    const entries = [
      'index',
      'schema',
      'schema-control',
      'schema-metrics',
      'schema-workflows',
      'skip-locked',
      'testing',
      'opentelemetry',
      'dashboard',
      'config',
      'import',
      'shards',
    ].flatMap((entry) => ['js', 'cjs', 'd.ts', 'd.cts'].map((end) => `dist/${entry}.${end}`));
    const texts = ['CHANGELOG.md', 'LICENSE', 'NOTICES.md', 'README.md', 'package.json'];
    // The command is a program of its own, which nobody imports.
    const named = [...texts, ...entries, 'dist/cli.js'];
    expect(files).toEqual(expect.arrayContaining(named));
    // What the entries share: a file for each part that an app may leave out. Each name says what is in the file.
    const code = [
      ...[
        'check',
        'control-tables',
        'dashboard-pages',
        'enqueue-from',
        'errors',
        'fragments',
        'groups',
        'key-rules',
        'limits',
        'metrics',
      ],
      ...['metrics-tables', 'operate', 'outcome', 'queue', 'rolldown-runtime', 'rows', 'schedules'],
      ...['shard-of', 'shard-workers', 'stats', 'tables', 'wait-errors', 'waiting', 'worker'],
      ...['workflow-tables', 'workflows'],
    ].flatMap((name) => [`${name}.js`, `${name}.cjs`]);
    const declarations = [
      ...['create-workflow-tables', 'dashboard', 'import', 'index', 'internal', 'query-builders'],
      ...['schema', 'schema-control', 'schema-metrics', 'schema-workflows', 'shards', 'table-place'],
    ].flatMap((name) => [`${name}.d.ts`, `${name}.d.cts`]);
    const others = files.filter((file) => !named.includes(file) && !file.startsWith('docs/'));
    expect(others).toEqual([...code, ...declarations].map((name) => `dist/chunks/${name}`).sort());
  });

  test('names a file of declarations after what it declares', async () => {
    for (const [name, declaration] of [
      ['index', 'declare class Queue<'],
      ['index', 'declare class Worker '],
      ['schema', 'declare const queueJobs:'],
      ['schema-control', 'declare const queueKeys:'],
      ['schema-metrics', 'declare const queueMetrics:'],
      ['schema-workflows', 'declare const queueSteps:'],
      ['dashboard', 'declare function createDashboard<'],
      ['import', 'declare function importJobs<'],
      ['shards', 'declare function createWorkers<'],
    ]) {
      for (const end of ['d.ts', 'd.cts']) {
        const file = join(cwd, `node_modules/drizzle-queue/dist/chunks/${name}.${end}`);
        expect(await readFile(file, 'utf8')).toContain(declaration);
      }
    }
  });

  test('holds whatever its pages link to, as they are read beside the code', async () => {
    const pages = files.filter((file) => file.endsWith('.md'));
    const dead: string[] = [];
    let relative = 0;
    for (const page of pages) {
      const text = await readFile(join(cwd, 'node_modules/drizzle-queue', page), 'utf8');
      const prose = text.replaceAll(/^ *```.*?^ *```/gms, '').replaceAll(/`[^`\n]*`/g, '');
      for (const [, target = ''] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
        const [file = ''] = target.split('#');
        if (file === '' || /^[a-z]+:/.test(target)) continue;
        relative++;
        if (!files.includes(posix.join(posix.dirname(page), file))) dead.push(`${page}: ${target}`);
      }
    }
    expect(relative).toBeGreaterThan(300);
    expect(dead).toEqual([]);
    // What users read: the pages about the making of the library are in the repository, and one picture is here.
    const docs = files.filter((file) => file.startsWith('docs/'));
    expect(docs.filter((file) => !file.endsWith('.md'))).toEqual(['docs/dashboard/overview-light.png']);
    for (const page of ['architecture', 'benchmarks', 'designs', 'features', 'rooms']) {
      expect(docs).not.toContain(`docs/${page}.md`);
    }
    expect(docs.filter((file) => file.startsWith('docs/decisions'))).toEqual([]);
  });

  test('has the same code and the same declarations for both module systems', () => {
    const ends = (end: string) => files.filter((file) => file.endsWith(end)).length;
    // But for the command.
    expect(ends('.cjs')).toBe(ends('.js') - 1);
    expect(ends('.d.cts')).toBe(ends('.d.ts'));
  });

  test('says the same of itself as the repository', async () => {
    const manifest = async (folder: string) =>
      JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    const packed = await manifest(join(cwd, 'node_modules/drizzle-queue'));
    expect(packed.exports).toEqual((await manifest('.')).exports);
    expect(packed).not.toHaveProperty('dependencies');
    expect(packed).not.toHaveProperty('optionalDependencies');
    // It would run on the machines of its users.
    for (const script of ['preinstall', 'install', 'postinstall', 'prepare']) {
      expect(packed.scripts).not.toHaveProperty(script);
    }
  });

  test.each([
    'drizzle-queue',
    'drizzle-queue/schema',
    'drizzle-queue/schema/control',
    'drizzle-queue/schema/metrics',
    'drizzle-queue/schema/workflows',
    'drizzle-queue/skip-locked',
    'drizzle-queue/testing',
    'drizzle-queue/opentelemetry',
    'drizzle-queue/dashboard',
    'drizzle-queue/config',
    'drizzle-queue/import',
    'drizzle-queue/shards',
  ])('exports the same names from %s to import and to require', async (entry) => {
    const names = async (source: string): Promise<string[]> =>
      JSON.parse(await run(process.execPath, ['--input-type=module', '--eval', source], { cwd }));
    const imported = await names(`
        import * as entry from '${entry}';
        console.log(JSON.stringify(Object.keys(entry)));`);
    const required = await names(`
        import { createRequire } from 'node:module';
        const entry = createRequire(process.cwd() + '/')('${entry}');
        console.log(JSON.stringify(Object.keys(entry)));`);
    expect(imported.length).toBeGreaterThan(0);
    expect(required.sort()).toEqual(imported.sort());
  });

  test('opens its five entries, and nothing else', async () => {
    const { code, output } = await endOf(
      process.execPath,
      ['--input-type=module', '--eval', `await import('drizzle-queue/dist/index.js');`],
      { cwd },
    );
    expect(code).toBe(1);
    expect(output).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  test('holds the licence of what is bundled, beside its code and nowhere else', async () => {
    const withLicence: string[] = [];
    for (const file of files.filter((name) => /\.c?js$/.test(name))) {
      const code = await readFile(join(cwd, 'node_modules/drizzle-queue', file), 'utf8');
      if (/^\/\*! croner\n.*Permission is hereby granted.*\*\//s.test(code)) withLicence.push(file);
      else expect(code).not.toContain('CronPattern');
    }
    expect(withLicence).toEqual(['dist/chunks/schedules.cjs', 'dist/chunks/schedules.js']);
  });

  test('has nothing to complain about for publint', async () => {
    expect(await run(tools.publint, [tarball, '--strict'], { cwd })).toContain('All good!');
  });

  test('gives every kind of importer the types that belong to its code (are the types wrong?)', async () => {
    // For node10, which knows no `exports`, there is `typesVersions`: `declarations.test.ts` compiles an app.
    // Without a format of its own it draws a table where it takes its output for a terminal, as on a CI machine.
    const args = [tarball, '--profile', 'node16', '--no-emoji', '--format', 'ascii'];
    const { code, output } = await endOf(tools.attw, args, { cwd });
    expect(code, output).toBe(0);
    expect(output.match(/from CJS\): OK \(CJS\)/g)).toHaveLength(12);
    expect(output.match(/from ESM\): OK \(ESM\)/g)).toHaveLength(12);
  });
});
