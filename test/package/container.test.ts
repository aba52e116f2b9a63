import { spawnSync } from 'node:child_process';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { useGuideApp } from './support/guide-app.ts';
import { readGuide } from './support/read-guide.ts';
import { type Running, run, start } from './support/run-program.ts';

const steps = [...readGuide('deploying').values()].flat();

function fileOfGuide(name: string): string {
  return steps.flatMap((step) => (step.do === 'write' && step.path === name ? [step.text] : [])).join('');
}

interface Image {
  /** Starts a command in it: its own, unless another one is given. */
  start(command?: readonly string[]): Running;
}

type Builder = (app: string, dockerfile: string, env: Readonly<Record<string, string>>) => Promise<Image>;

/** Does what the Dockerfile says without Docker, each stage in an empty folder beside the app. */
const inEmptyFolders: Builder = async (app, dockerfile, given) => {
  const stages = new Map<string, string>();
  let folder = '';
  let command: string[] = [];
  const env: Record<string, string> = { ...given };
  for (const line of dockerfile.split('\n').filter((line) => line !== '' && !line.startsWith('#'))) {
    const [instruction = '', rest = ''] = line.split(/ (.*)/s);
    if (instruction === 'FROM') {
      const name = / AS (\w+)/.exec(rest)?.[1] ?? 'last';
      folder = `${app}-${name}`;
      stages.set(name, folder);
      await mkdir(folder);
    } else if (instruction === 'COPY') {
      const stage = /--from=(\w+)/.exec(rest)?.[1];
      const [paths, into = '.'] = split(rest.replace(/--from=\w+ /, ''));
      const from = stage === undefined ? app : stages.get(stage);
      for (const path of paths) {
        const source = join(from ?? '', path.replace(/^\/app\//, ''));
        const name = path === '.' || !into.endsWith('/') ? '' : path;
        await cp(source, join(folder, into, name), {
          recursive: true,
          // What the guide's .dockerignore leaves out.
          filter: (file) => !/\/(node_modules|\.git|\.env)$/.test(file),
        });
      }
    } else if (instruction === 'RUN') {
      // `npm ci` refuses a lock file that lacks the optional binaries of this platform.
      const command = rest.replace('npm ci', 'npm install --prefer-offline --no-audit --no-fund');
      await run('bash', ['-euo', 'pipefail', '-c', command], { cwd: folder, env });
    } else if (instruction === 'CMD') {
      command = JSON.parse(rest);
    } else if (instruction === 'ENV') {
      const [name = '', value = ''] = rest.split('=');
      env[name] = value;
    }
  }
  return {
    start(other = command) {
      const [program = '', ...args] = other;
      return start(program, args, { cwd: folder, env });
    },
  };
};

function split(words: string): [string[], string | undefined] {
  const all = words.split(' ');
  return [all.slice(0, -1), all.at(-1)];
}

/** Only the library comes from its tarball, as there is no release yet. */
const byDocker: Builder = async (app, dockerfile, env) => {
  const here = { cwd: app };
  const tag = 'drizzle-queue-container-test';
  await cp(inject('packed').tarball, join(app, 'drizzle-queue.tgz'));
  await run(
    'npm',
    ['install', '--package-lock-only', '--no-audit', '--no-fund', './drizzle-queue.tgz'],
    here,
  );
  await writeFile(join(app, '.dockerignore'), fileOfGuide('.dockerignore'));
  await writeFile(
    join(app, 'worker.Dockerfile'),
    dockerfile.replaceAll('package-lock.json ./', 'package-lock.json drizzle-queue.tgz ./'),
  );
  await run('docker', ['build', '--network=host', '-f', 'worker.Dockerfile', '-t', tag, '.'], here);
  onTestFinished(async () => {
    await run('docker', ['image', 'rm', '--force', tag], here);
  });
  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  return {
    start: (command = []) =>
      start('docker', ['run', '--rm', '--network=host', ...variables, tag, ...command], here),
  };
};

const dockerAnswers = spawnSync('docker', ['info']).status === 0;

describe.each([
  { name: 'Express', from: ['servers', 'express'], sources: 'src', command: '"node", ' },
  // What the page says of `server-only`.
  { name: 'Next.js', from: ['next'], sources: 'lib', command: '"node", "--conditions=react-server", ' },
])('the image of $name', ({ from, sources, command }) => {
  const database = useTestDatabase({ template: false });
  const app = useGuideApp({
    from,
    guide: 'deploying',
    env: () => ({ DATABASE_URL: database.url }),
    shellEnv: () => ({ DATABASE_URL: database.url }),
  });
  const dockerfile = fileOfGuide('worker.Dockerfile')
    .replaceAll('src/worker', `${sources}/worker`)
    .replace('"node", ', command);

  beforeAll(async () => {
    await app().shell('npm install drizzle-queue');
    await app().shell('npm install --save-dev --prefer-offline --no-audit esbuild');
    await app().shell('npx drizzle-queue init --yes');
    await app().shell('npx drizzle-kit generate');
    await app().shell('npx drizzle-kit migrate');
  });

  async function expectJobsToRun(build: Builder): Promise<void> {
    const { length: before } = await finishedJobs(database, 0);
    const image = await build(app().directory, dockerfile, { DATABASE_URL: database.url });

    await app().shell(`npx drizzle-queue enqueue greet '{ "name": "Ada" }'`);
    const worker = image.start();
    await until(() => worker.hasEnded() || worker.output().includes('Hello Ada'), { timeoutMs: 60_000 });
    expect(worker.output()).toContain('Hello Ada');
    worker.signal('SIGTERM');
    expect(await worker.ended).toBe(0);

    await app().shell(`npx drizzle-queue enqueue greet '{ "name": "Eve" }'`);
    const cli = 'node_modules/drizzle-queue/dist/cli.js';
    const drain = image.start(['node', cli, 'work', '--drain', '--config', 'dist/queue.config.mjs']);
    expect(await drain.ended, drain.output()).toBe(0);
    expect(drain.output()).toContain('Hello Eve');
    expect(await finishedJobs(database, before + 2)).toHaveLength(before + 2);
  }

  test('runs the worker that init writes, without what is for development', () =>
    expectJobsToRun(inEmptyFolders));

  test.skipIf(!dockerAnswers)(
    'is built by Docker and runs that worker (skipped where no Docker answers)',
    () => expectJobsToRun(byDocker),
  );
});
