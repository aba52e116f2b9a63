import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readPages } from '../docs/pages.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { start } from './support/run-program.ts';
import { tools } from './support/tools.ts';
import { useFixture } from './support/use-fixture.ts';

const database = useTestDatabase();
const project = useFixture('mounting');
const ADA = { authorization: 'Bearer ada' };

const node = [tools.node22, ['--experimental-strip-types', '--no-warnings']] as const;
/** The servers, the programs that they run in, and the files that docs/dashboard.md shows of them. */
const servers = [
  ['Hono', 'src/hono.ts', node, 'src/hono.ts'],
  ['Next.js', 'src/next.ts', node, 'app/admin/queue/[[...path]]/route.ts'],
  ['Bun', 'src/bun.ts', [tools.bun, []], 'src/bun.ts'],
  ['Express', 'src/express.ts', node, 'src/express.ts'],
  ['Fastify', 'src/fastify.ts', node, 'src/fastify.ts'],
  ['NestJS', 'src/nest.ts', node, 'src/nest.ts'],
] as const;

describe.each(servers)('mounted in %s', (_, file, [program, args]) => {
  test('its page, an asset and a form work, and others are refused', async () => {
    const cwd = project().directory;
    const server = start(program, [...args, file], { cwd, env: { DATABASE_URL: database.url, PORT: '0' } });
    onTestFinished(server.stop);
    const port = await until(
      () => {
        if (server.hasEnded()) throw new Error(`the server has ended:\n${server.output()}`);
        return /^(\d+)$/m.exec(server.stdout())?.[1];
      },
      { timeoutMs: 60_000 },
    );
    const origin = `http://127.0.0.1:${port}`;
    const page = await fetch(`${origin}/admin/queue`, { headers: ADA });
    const html = await page.text();
    expect([page.status, html.includes('<h1>Overview</h1>')]).toEqual([200, true]);
    const [, script = ''] = /src="(\/admin\/queue\/assets\/app[^"]+)"/.exec(html) ?? [];
    const asset = await fetch(`${origin}${script}`, { headers: ADA });
    expect([asset.status, asset.headers.get('content-type')]).toEqual([
      200,
      'text/javascript; charset=utf-8',
    ]);
    expect(await asset.text()).toContain('data-tick');

    const pause = (name: string, headers: Record<string, string>) =>
      fetch(`${origin}/admin/queue/actions/pause`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
        body: String(new URLSearchParams({ queue: name, back: '/queues?x=1' })),
        redirect: 'manual',
      });
    const sent = await pause(`${file} ü & b`, { ...ADA, origin });
    expect([sent.status, sent.headers.get('location')]).toEqual([303, '/admin/queue/queues?x=1&done=paused']);
    expect((await pause('forged', { ...ADA, origin: 'http://evil.test' })).status).toBe(403);
    expect((await pause('unknown', { origin })).status).toBe(403);
    expect((await fetch(`${origin}/admin/queue`)).status).toBe(403);
    const rows = await database.client<{ queue: string }[]>`select queue from queue_pauses`;
    const paused = rows.map(({ queue }) => queue);
    expect(paused).toContain(`${file} ü & b`);
    expect(paused.filter((name) => !name.startsWith('src/'))).toEqual([]);
  });
});

test('the page about the dashboard shows exactly what these servers run', async () => {
  const page = readPages().find(({ path }) => path === 'docs/dashboard.md');
  const section = (page?.blocks ?? []).filter(({ code }) =>
    /^(app\.|const app|Bun\.|export const GET)/m.test(code),
  );
  const blocks = section.map(({ code }) => linesOf(code).join('\n'));
  expect(blocks).toHaveLength(5);
  const files = servers.map(([, , , shown]) => shown);
  const texts = await Promise.all(
    files.map((path) =>
      readFile(fileURLToPath(new URL(`fixtures/mounting/${path}`, import.meta.url)), 'utf8'),
    ),
  );
  const said = texts.map((text) => linesOf(text).join('\n'));
  for (const text of said)
    expect(
      blocks.some((block) => text.includes(block)),
      text,
    ).toBe(true);
  for (const block of blocks)
    expect(
      said.some((text) => text.includes(block)),
      block,
    ).toBe(true);
});

/** What a text says but for its imports, line by line, however it is indented. */
function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('import '));
}
