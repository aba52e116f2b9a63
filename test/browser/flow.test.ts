import { mkdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createQueue, defineJob, unvalidated, workflowsIn } from 'drizzle-queue';
import { createDashboard, toNode } from 'drizzle-queue/dashboard';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { chromiumPath, launch, openPage } from './support/chromium.ts';

const database = useTestDatabase();
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const { workflows } = queue;
const axe = readFile(
  fileURLToPath(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url)),
  'utf8',
);
const kind = (name: string) => defineJob(name, { queue: 'pages', payload: unvalidated<number>() });
const extract = kind('extract-pages');
const transform = kind('transform');
const thumbnail = kind('make-thumbnail');
const load = kind('load-into-warehouse');
const node = kind('build-target');

let server: Server;
let browser: Browser;
let origin: string;
/** Of one job, 500 of one kind, some of another one, and one. */
let pipeline: number;
/** Of 500 jobs, each with others before it. */
let irregular: number;
let middleIds: readonly number[];

/** Ends jobs as workers would: those with these ids. */
async function end(ids: readonly number[], state: 'completed' | 'discarded'): Promise<void> {
  await database.client`
    with gone as (delete from queue_jobs where id = any(${ids as number[]}) returning *)
    insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
      fence, metadata, created_at, run_at, claimed_at, finished_at, batch_id)
    select id, queue, kind, payload, ${state},
      case when ${state} = 'completed' then '[]'::jsonb
        else '[{"attempt": 1, "name": "PageError", "message": "page 17 cannot be read"}]' end,
      1, max_attempts, priority, fence, metadata, created_at, created_at, now(), now(), batch_id from gone`;
}

const folder = process.env.SCREENSHOTS ?? join(tmpdir(), 'drizzle-queue-flow');
const shot = async (page: Page, name: string) => await page.screenshot({ path: join(folder, `${name}.png`) });

describe.skipIf(chromiumPath === undefined)('the page of a flow', () => {
  beforeAll(async () => {
    mkdirSync(folder, { recursive: true });
    await addWorkflowTables(database);
    const made = await workflows.enqueueFlow(database.db, (flow) => {
      const first = flow.add(extract, 0);
      const parts = Array.from({ length: 500 }, (_, page) => flow.add(transform, page, { after: [first] }));
      const small = Array.from({ length: 40 }, (_, page) => flow.add(thumbnail, page, { after: [first] }));
      flow.add(load, 0, { after: [...parts, ...small], onFailure: 'run' });
    });
    [pipeline, middleIds] = [made.id, made.jobIds.slice(1, 501)];
    await end(made.jobIds.slice(0, 1), 'completed');
    await end(middleIds.slice(0, 320), 'completed');
    await end(middleIds.slice(320, 323), 'discarded');
    await end(made.jobIds.slice(501, 541), 'completed');
    await database.client`
      update queue_jobs set blockers = null, run_at = now() - interval '2 s' where kind = 'transform'`;
    await database.client`
      update queue_jobs set worker_id = 1, claimed_at = now(), attempt = 1
      where id = any(${middleIds.slice(323, 343) as number[]})`;
    irregular = (
      await workflows.enqueueFlow(database.db, (flow) => {
        const all: ReturnType<typeof flow.add>[] = [];
        for (let at = 0; at < 500; at++) {
          const before = [at - 1 - (at % 7), at - 11 - (at % 13), at - 25].filter((each) => each >= 0);
          all.push(flow.add(node, at, { after: at < 24 ? [] : before.flatMap((each) => all[each] ?? []) }));
        }
      })
    ).id;
    // As folds count them.
    await database.client`
      update queue_batches as b set
        pending = (select count(*) from queue_jobs as j where j.batch_id = b.id),
        failed = (select count(*) from queue_results as r where r.batch_id = b.id and r.state = 'discarded')`;
    await database.client`analyze`;
    const answer = toNode(
      createDashboard({
        db: Object.create(database.db) as typeof database.db,
        queue,
        authorize: () => ({ actor: 'ann', can: 'write' }),
        onAction: () => {},
      }),
    );
    server = createServer((request, response) => answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // It listens on a port.
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await launch();
  });

  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  test.each([
    { width: 1280, colorScheme: 'light' },
    { width: 1280, colorScheme: 'dark' },
    { width: 390, colorScheme: 'light' },
    { width: 320, colorScheme: 'dark' },
  ] as const)('is clean at $width px, $colorScheme', async (screen) => {
    const { page, context, complaints } = await openPage(browser, origin, screen);
    for (const [name, path] of Object.entries({
      pipeline: `/flows/${pipeline}`,
      irregular: `/flows/${irregular}`,
      small: `/flows/${irregular}?zoom=25`,
      fit: `/flows/${pipeline}?zoom=fit`,
      none: '/flows/999999',
      list: '/flows',
      completed: '/flows?state=completed',
    })) {
      await page.goto(`${origin}${path}`);
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      expect(wide, `${name} scrolls sideways`).toBe(0);
      expect(await violations(page), name).toEqual([]);
      await shot(page, `${name}-${screen.width}-${screen.colorScheme}`);
    }
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
    await context.close();
  });

  test('is reached from the list of flows', async () => {
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    await page.goto(`${origin}/`);
    await page.getByRole('link', { name: 'Flows', exact: true }).click();
    await page.getByRole('link', { name: 'in progress' }).click();
    await page.getByText('Flow', { exact: true }).waitFor();
    await page.getByRole('link', { name: `#${pipeline}`, exact: true }).click();
    await page.getByRole('heading', { level: 1, name: `Flow #${pipeline}` }).waitFor();
    await context.close();
  });

  test('a screenshot for the docs', async () => {
    const docs = fileURLToPath(new URL('../../docs/dashboard/', import.meta.url));
    const { page, context } = await openPage(browser, origin, {
      ...{ width: 1100, height: 720, colorScheme: 'light' },
    });
    await page.goto(`${origin}/flows/${pipeline}`);
    const path = join(docs, 'flow-light.png');
    await page.screenshot({ path });
    expect(statSync(path).size).toBeLessThan(120_000);
    await context.close();
  });

  test('500 jobs side by side are one box, which opens to a list by the keyboard', async () => {
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    await page.goto(`${origin}/jobs/${middleIds[0]}`);
    await page.getByRole('link', { name: `#${pipeline}`, exact: true }).click();
    expect(await page.locator('.flow a').count()).toBe(4);
    const box = page.getByRole('link', {
      name: /^transform × 500: 320 completed, 3 discarded, 20 running, 157 due/,
    });
    await box.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'transform × 500' }).waitFor();
    expect(await page.locator('tr[data-row]').count()).toBe(50);
    await page.getByRole('link', { name: 'discarded 3' }).click();
    await page.getByText('PageError: page 17 cannot be read').first().waitFor();
    expect(await page.locator('tr[data-row]').count()).toBe(3);
    await shot(page, 'list');
    await page.locator('tr[data-row] .row-link').first().click();
    await page.getByRole('heading', { level: 1, name: `transform #${middleIds[320]}` }).waitFor();
    await context.close();
  });

  test('500 jobs that differ are 500 boxes, none upon another, that scroll and zoom', async () => {
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    await page.goto(`${origin}/flows/${irregular}`);
    const boxes = await page
      .locator('.flow a .flow-box')
      .evaluateAll((all) => all.map((box) => box.getBoundingClientRect().toJSON()));
    expect(boxes).toHaveLength(500);
    expect(new Set(boxes.map(({ x, y }) => `${Math.round(x)} ${Math.round(y)}`)).size).toBe(500);
    const size = async () =>
      await page.locator('.flow').evaluate((flow) => [flow.scrollWidth, flow.clientWidth] as const);
    const [wide = 0, shown = 0] = await size();
    expect(wide).toBeGreaterThan(shown);
    await page.getByRole('link', { name: '25 %' }).click();
    await page.waitForURL('**zoom=25');
    const [less = 0] = await size();
    expect(less).toBeLessThan(wide / 2);
    await context.close();
  });

  test('counts change while one looks, and what one has scrolled to stays', async () => {
    const { page, context, complaints } = await openPage(browser, origin, {
      width: 390,
      colorScheme: 'light',
    });
    await page.goto(`${origin}/flows/${pipeline}`);
    await page.getByLabel('Live', { exact: true }).selectOption('1');
    await page.locator('.flow').evaluate((flow) => flow.scrollTo(200, 0));
    await end(middleIds.slice(323, 330), 'completed');
    await page
      .getByRole('link', { name: /transform × 500: 327 completed, 3 discarded, 13 running/ })
      .waitFor();
    expect(await page.locator('.flow').evaluate((flow) => flow.scrollLeft)).toBe(200);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('is used without a script: put back, and cancelled after a question', async () => {
    const { page, context } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'dark',
      javaScriptEnabled: false,
    });
    await page.goto(`${origin}/flows/${pipeline}`);
    await page.getByRole('button', { name: /^Redrive flow/ }).click();
    await page.getByText('Put back in their order: 3 jobs.').waitFor();
    await page.goto(`${origin}/flows/${irregular}`);
    await page.locator('summary', { hasText: 'Cancel flow' }).click();
    await page.getByRole('button', { name: /^Cancel flow/ }).click();
    await page.getByText('The flow is cancelled').waitFor();
    const [row] = await database.client`
      select count(*)::int as tallies from queue_tallies where cancel_reason is not null`;
    expect(row?.tallies).toBeGreaterThan(0);
    await context.close();
  });
});

/** What axe finds on a page, in one line each. */
async function violations(page: Page): Promise<string[]> {
  // Not as a script of the page: its policy does not concern what the test itself runs.
  await page.evaluate(await axe);
  const found: { id: string; nodes: { html: string; failureSummary: string }[] }[] = await page.evaluate(
    async () =>
      (
        await Reflect.get(globalThis, 'axe').run(document, {
          runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
        })
      ).violations,
  );
  return found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 140)} ${nodes[0]?.failureSummary}`);
}
