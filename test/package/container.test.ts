import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { useGuideApp } from './support/guide-app.ts';
import { readGuide } from './support/read-guide.ts';
import { run, start } from './support/run-program.ts';

const dockerfile = [...readGuide('deploying').values()]
  .flat()
  .flatMap((step) => (step.do === 'write' && step.path === 'worker.Dockerfile' ? [step.text] : []))
  .join('');

interface Image {
  readonly folder: string;
  readonly command: readonly string[];
}

/** Does what a Dockerfile says, each stage in an empty folder beside the app; answers the last one. */
async function build(app: string, text: string): Promise<Image> {
  const stages = new Map<string, string>();
  let folder = '';
  let command: string[] = [];
  const env: Record<string, string> = {};
  for (const line of text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))) {
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
  return { folder, command };
}

function split(words: string): [string[], string | undefined] {
  const all = words.split(' ');
  return [all.slice(0, -1), all.at(-1)];
}

describe.each([
  { name: 'Express', from: ['servers', 'express'], sources: 'src', conditions: [] },
  // What the page says of `server-only`.
  { name: 'Next.js', from: ['next'], sources: 'lib', conditions: ['--conditions=react-server'] },
])('the image of $name', ({ from, sources, conditions }) => {
  const database = useTestDatabase({ template: false });
  const app = useGuideApp({
    from,
    guide: 'deploying',
    env: () => ({ DATABASE_URL: database.url }),
    shellEnv: () => ({ DATABASE_URL: database.url }),
  });

  test('runs the worker that init writes, without what is for development', async () => {
    await app().shell('npm install drizzle-queue');
    await app().shell('npm install --save-dev --prefer-offline --no-audit esbuild');
    await app().shell('npx drizzle-queue init --yes');
    await app().shell('npx drizzle-kit generate');
    await app().shell('npx drizzle-kit migrate');
    const { folder, command } = await build(
      app().directory,
      dockerfile.replaceAll('src/worker', `${sources}/worker`),
    );

    const env = { DATABASE_URL: database.url };
    const [program = '', ...args] = command;
    await app().shell(`npx drizzle-queue enqueue greet '{ "name": "Ada" }'`);
    const worker = start(program, [...conditions, ...args], { cwd: folder, env });
    await until(() => worker.hasEnded() || worker.output().includes('Hello Ada'), { timeoutMs: 60_000 });
    expect(worker.output()).toContain('Hello Ada');
    worker.signal('SIGTERM');
    expect(await worker.ended).toBe(0);

    await app().shell(`npx drizzle-queue enqueue greet '{ "name": "Eve" }'`);
    const cli = 'node_modules/drizzle-queue/dist/cli.js';
    const work = ['work', '--drain', '--config', 'dist/queue.config.mjs'];
    expect(await run(process.execPath, [cli, ...work], { cwd: folder, env })).toContain('Hello Eve');
    expect(await finishedJobs(database, 2)).toHaveLength(2);
  });
});
