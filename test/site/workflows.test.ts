import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { repository, root } from '../../site/repository.ts';

// One of the packages that the site is built with.
const { parse }: { parse(text: string): unknown } = createRequire(join(root, 'site/package.json'))('yaml');

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
  readonly on: object;
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly 'runs-on': string;
        readonly 'timeout-minutes': number;
        readonly permissions?: Readonly<Record<string, string>>;
        readonly steps: readonly Step[];
      }
    >
  >;
}

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const folder = '.github/workflows';
const workflows = readdirSync(join(root, folder)).map((name): [string, Workflow] => [
  name,
  // What is expected of it is checked below.
  parse(read(`${folder}/${name}`)) as Workflow,
]);
const { scripts }: { scripts: Record<string, string> } = JSON.parse(read('package.json'));

describe.each(workflows)('the workflow %s', (_, { on, permissions, jobs }) => {
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  test('says when it runs, with what rights, and for how long at most', () => {
    expect(Object.keys(on).length).toBeGreaterThan(0);
    expect(permissions.contents).toBe('read');
    for (const job of Object.values(jobs)) {
      expect(job['runs-on']).toBe('ubuntu-latest');
      expect(job['timeout-minutes']).toBeLessThanOrEqual(60);
    }
  });

  test('runs scripts and folders that exist', () => {
    const commands = steps.flatMap((step) => [step.run, step.with?.version, step.with?.publish]).map(String);
    const named = commands.flatMap((command) =>
      [...command.matchAll(/\bnpm (?:run (?:--silent )?([\w:-]+)|(test)\b)/g)].map(
        ([, script, alone]) => script ?? alone ?? '',
      ),
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((script) => !(script in scripts))).toEqual([]);
    for (const command of commands) {
      const [, prefix] = /--prefix (\S+)/.exec(command) ?? [];
      if (prefix !== undefined)
        expect(JSON.parse(read(`${prefix}/package-lock.json`))).toHaveProperty('packages');
    }
  });

  test('uses actions of a version, and runs nothing without a name or a command', () => {
    for (const { uses, run } of steps) {
      expect([uses, run].filter((text) => text !== undefined)).toHaveLength(1);
      if (uses !== undefined) expect(uses).toMatch(/^(actions|changesets)\/[\w-]+@v\d+$/);
    }
  });
});

test('the tests of a push are those of .ci/run', () => {
  const scriptsIn = (text: string) =>
    [...text.matchAll(/\bnpm (?:run )?(demo|test[\w:-]*)/g)].map(([, script]) => script);
  const here = new Set(scriptsIn(read('.ci/run')));
  expect([...here].filter((script) => !new Set(scriptsIn(read(`${folder}/test.yml`))).has(script))).toEqual(
    [],
  );
});

test('only the release has rights to write, and publishes with provenance', () => {
  const [, release] = workflows.find(([name]) => name === 'release.yml') ?? [];
  expect(release?.jobs.release?.permissions).toEqual({
    contents: 'write',
    'pull-requests': 'write',
    'id-token': 'write',
  });
  expect(read(`${folder}/release.yml`)).toContain('NPM_CONFIG_PROVENANCE: "true"');
  for (const [name, { permissions, jobs }] of workflows) {
    if (name === 'release.yml') continue;
    const all = [permissions, ...Object.values(jobs).map((job) => job.permissions ?? {})];
    expect(all.flatMap((rights) => Object.entries(rights)).filter(([, right]) => right === 'write')).toEqual(
      name === 'site.yml'
        ? [
            ['pages', 'write'],
            ['id-token', 'write'],
          ]
        : [],
    );
  }
});

test('changesets are of this package, and leave its changelog alone', () => {
  expect(JSON.parse(read('.changeset/config.json'))).toMatchObject({
    changelog: false,
    access: 'public',
    baseBranch: 'main',
  });
  for (const name of readdirSync(join(root, '.changeset')).filter((file) => file.endsWith('.md'))) {
    expect(read(`.changeset/${name}`)).toMatch(/^---\n'drizzle-queue': (patch|minor|major)\n---\n\n\S/);
  }
});

test('the forms of issues have what GitHub asks for', () => {
  const templates = '.github/ISSUE_TEMPLATE';
  for (const name of readdirSync(join(root, templates)).filter((file) => file !== 'config.yml')) {
    const form = parse(read(`${templates}/${name}`));
    expect(form).toMatchObject({ name: expect.any(String), description: expect.any(String) });
    // It has a body: the next line fails otherwise.
    const { body } = form as { body: { type: string; id: string; attributes: object }[] };
    expect(new Set(body.map(({ id }) => id)).size).toBe(body.length);
    for (const { type, attributes } of body) {
      expect(type).toMatch(/^(textarea|input|dropdown|markdown|checkboxes)$/);
      expect(attributes).toHaveProperty('label');
    }
  }
});

test('there is one repository and one site, wherever they are named', () => {
  const { homepage, bugs }: { homepage: string; bugs: string } = JSON.parse(read('package.json'));
  expect(bugs).toBe(`${repository}/issues`);
  for (const file of [
    'README.md',
    'SECURITY.md',
    'CONTRIBUTING.md',
    'docs/README.md',
    '.github/ISSUE_TEMPLATE/config.yml',
  ]) {
    for (const [url] of read(file).matchAll(/https:\/\/[^\s)]*drizzle-queue[^\s)]*/g)) {
      expect(url.startsWith(`${repository}/`) || url.startsWith(homepage), `${file}: ${url}`).toBe(true);
    }
  }
});
