import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { useGuideApp } from './support/guide-app.ts';
import { readGuide } from './support/read-guide.ts';
import { tools } from './support/tools.ts';

const database = useTestDatabase({ template: false });
const app = useGuideApp({
  from: ['fastify'],
  guide: 'deploying',
  env: () => ({ DATABASE_URL: database.url }),
  shellEnv: () => ({ DATABASE_URL: database.url }),
});

/** The files of the page, by their names. */
const files = new Map(
  [...readGuide('deploying').values()]
    .flat()
    .flatMap((step) => (step.do === 'write' ? [[step.path, step.text]] : [])),
);
const textOf = (name: string): string => files.get(name) ?? '';

// A container's own process ids: what the first of them does with a signal differs from the others.
const hasNamespaces = spawnSync('unshare', ['--pid', '--fork', 'true']).status === 0;
if (!hasNamespaces) console.log('no PID namespaces here: the worker is not run as the first process of one');

const SLOW_HANDLERS = `import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { handle } from 'drizzle-queue';
import { greet } from './jobs.ts';

export const handlers = [
  handle(greet, async () => {
    console.log('the handler has begun');
    while (!existsSync('may-end')) await sleep(20);
    console.log('the handler has ended');
  }),
];
`;

test('the command of the image answers the probes of the manifest, and ends its handlers on SIGTERM', async () => {
  await app().shell('npm install drizzle-queue');
  await app().shell('npx drizzle-queue init --yes');
  await app().shell('npx drizzle-kit generate');
  for (const heading of ['The program', 'Docker', 'Kubernetes', 'Fly', 'Railway', 'Render']) {
    await app().follow(heading);
  }
  await app().shell('npx tsc');
  await app().shell('node src/migrate.ts');
  await writeFile(join(app().directory, 'src/handlers.ts'), SLOW_HANDLERS);

  const command = commandOf(textOf('Dockerfile'));
  const worker = await app().launch(`${hasNamespaces ? 'unshare --pid --fork ' : ''}${command.join(' ')}`);
  const manifest = parsed('YAML', textOf('k8s/worker.yaml'));
  const [container] = manifest.spec.template.spec.containers;
  await until(async () => (await app().request(container.readinessProbe.httpGet.path)).status === 200);
  expect((await app().request(container.livenessProbe.httpGet.path)).status).toBe(200);
  // What no probe sends ends no worker: it goes on below.
  expect(await statusLineOf(`TRACE /live HTTP/1.1\r\nhost: worker\r\nconnection: close\r\n\r\n`)).toContain(
    '200',
  );

  await app().shell(`npx drizzle-queue enqueue greet '{"name":"Ada"}'`);
  await until(() => worker.output().includes('the handler has begun'));
  const pid = hasNamespaces ? childOf(worker.pid) : worker.pid;
  process.kill(pid, 'SIGTERM');
  await until(() => worker.output().includes('for 1 handler to end'));
  await writeFile(join(app().directory, 'may-end'), '');
  expect(await worker.ended, worker.output()).toBe(0);
  expect(worker.output()).toContain('the handler has ended');
  expect(await finishedJobs(database, 1)).toEqual([{ kind: 'greet', state: 'completed' }]);
  expect(await database.client`select from queue_workers`).toHaveLength(0);
});

describe('the files of the platforms', () => {
  const run = commandOf(textOf('Dockerfile')).join(' ');

  test('all run the same program', () => {
    expect(run).toBe('node src/worker.ts');
    const compose = parsed('YAML', textOf('compose.yaml'));
    expect(compose.services.worker.command.join(' ')).toBe(run);
    const fly = parsed('TOML', textOf('fly.toml'));
    expect(fly.processes.worker).toBe(run);
    expect(fly.http_service.processes).not.toContain('worker');
    expect(JSON.parse(textOf('railway.json')).deploy.startCommand).toBe(run);
    const [render] = parsed('YAML', textOf('render.yaml')).services;
    expect(render).toMatchObject({ type: 'worker', startCommand: run });
    const pod = parsed('YAML', textOf('k8s/worker.yaml')).spec.template.spec;
    expect(pod.containers[0].command.join(' ')).toBe(run);
  });

  test('all give it longer than it takes', () => {
    const takesSeconds = 26;
    const given = [
      Number.parseInt(parsed('YAML', textOf('compose.yaml')).services.worker.stop_grace_period, 10),
      parsed('YAML', textOf('k8s/worker.yaml')).spec.template.spec.terminationGracePeriodSeconds,
      parsed('TOML', textOf('fly.toml')).kill_timeout,
      JSON.parse(textOf('railway.json')).deploy.drainingSeconds,
      parsed('YAML', textOf('render.yaml')).services[0].maxShutdownDelaySeconds,
    ];
    for (const seconds of given) expect(seconds).toBeGreaterThan(takesSeconds);
  });

  test('the manifest holds together', () => {
    const { spec } = parsed('YAML', textOf('k8s/worker.yaml'));
    expect(spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels);
    const [container] = spec.template.spec.containers;
    const [port] = container.ports;
    for (const probe of [container.livenessProbe, container.readinessProbe]) {
      expect(probe.httpGet.port).toBe(port.name);
    }
    expect(textOf('src/worker.ts')).toContain(`process.env.PORT ?? ${port.containerPort}`);
    expect(parsed('TOML', textOf('fly.toml')).checks.worker.port).toBe(port.containerPort);
  });
});

/** What the probes' server says to a request that `fetch` would not send. */
async function statusLineOf(request: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: app().port }).end(request);
  return (await text(socket)).split('\r\n')[0] ?? '';
}

/** The command of a Dockerfile, which has to be a list: the other form would start a shell. */
function commandOf(dockerfile: string): string[] {
  return JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? 'null');
}

/** Bun has parsers of both. */
function parsed(format: 'YAML' | 'TOML', text: string) {
  const program = `console.log(JSON.stringify(Bun.${format}.parse(require('node:fs').readFileSync(0, 'utf8'))))`;
  return JSON.parse(execFileSync(tools.bun, ['-e', program], { input: text, encoding: 'utf8' }));
}

/** The only process that another has started. */
function childOf(pid: number): number {
  const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
  // Zero would be the group of the tests themselves.
  if (!(child > 0)) throw new Error(`process ${pid} has not exactly one child`);
  return child;
}
