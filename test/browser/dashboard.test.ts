import { mkdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { createDashboard, type NodeHandler, toNode } from 'drizzle-queue/dashboard';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { type BusyShop, fillShop, queue } from './support/busy-shop.ts';
import { chromiumPath, launch, openPage, type Screen } from './support/chromium.ts';

const BASE = '/admin/queue';
const HISTORY = 100_000;
const database = useTestDatabase();
const axe = readFile(
  fileURLToPath(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url)),
  'utf8',
);

let server: Server;
let answer: NodeHandler;
let browser: Browser;
let origin: string;
let shop: BusyShop;

/** With figures of its own: nobody has asked for them yet. */
const newDashboard = () =>
  createDashboard({
    db: Object.create(database.db) as typeof database.db,
    queue,
    basePath: BASE,
    title: 'Tea shop',
    authorize: () => ({ actor: 'ann@tea.shop', can: 'write' }),
    onAction: () => {},
  });

describe.skipIf(chromiumPath === undefined)('in a browser', () => {
  beforeAll(async () => {
    shop = await fillShop(database, HISTORY);
    answer = toNode(newDashboard());
    server = createServer((request, response) => answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // It listens on a port.
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await launch();
  });

  test.each([
    ['a redirect to the login', () => new Response(null, { status: 303, headers: { location: '/login' } })],
    ['a refusal', () => 'none' as const],
    ['a login page in its place', () => new Response('<h1>Log in</h1>')],
  ])('after a logout an open page drops its rows: %s', async (_, out) => {
    let isIn = true;
    const before = answer;
    const options = { db: Object.create(database.db) as typeof database.db, queue, basePath: BASE };
    answer = toNode(
      createDashboard({ ...options, authorize: () => (isIn ? { actor: 'ann', can: 'write' } : out()) }),
    );
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    try {
      await page.goto(`${origin}${BASE}/jobs`);
      await page.locator('tr[data-row]').first().waitFor();
      // Somebody who has ticked a row is not spared.
      await page.locator('.choose input[name=id]').first().check();
      isIn = false;
      await page.getByText('This page is no longer available').waitFor();
      expect(await page.locator('tr, [data-chart], #filter').count()).toBe(0);
      expect(await page.locator('body').innerText()).not.toContain('send-receipt');
    } finally {
      await context.close();
      answer = before;
    }
  });

  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  const pages = () => ({
    overview: '',
    jobs: '/jobs',
    job: `/jobs/${shop.retrying}`,
    'discarded-job': `/jobs/${shop.failed}`,
    'running-job': `/jobs/${shop.running}`,
    'job-with-steps': `/jobs/${shop.fulfilling}`,
    'no-job': '/jobs/999999999',
    errors: '/errors',
    queues: '/queues',
    schedules: '/schedules',
    limits: '/limits',
    many: '/jobs/many?action=redrive&of=all&q=state%3Adiscarded',
    'many-none': '/jobs/many?action=cancel&of=selected',
    workers: '/workers',
    database: '/database',
    problem: '/jobs?q=tenant%3A7',
  });

  const screens: Screen[] = [
    { width: 320, colorScheme: 'light' },
    { width: 320, colorScheme: 'dark' },
    { width: 1280, colorScheme: 'light' },
    { width: 1280, colorScheme: 'dark' },
  ];

  test.each(screens)('every page is clean at $width px, $colorScheme', async (screen) => {
    const { page, context, complaints } = await openPage(browser, origin, screen);
    for (const [name, path] of Object.entries(pages())) {
      const answer = await page.goto(`${origin}${BASE}${path}`);
      expect(answer?.status(), name).toBe(name === 'no-job' ? 404 : 200);
      if (name === 'overview') await page.locator('.uplot').nth(2).waitFor();
      expect(await sideways(page), `${name} scrolls sideways`).toBe(0);
      expect(await violations(page), name).toEqual([]);
    }
    // The browser itself reports a page that is not there.
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
    await context.close();
  });

  test('times are those of the browser, and the page says once of which zone', async () => {
    const { page, context } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'light',
      timezoneId: 'Asia/Kolkata',
    });
    await page.goto(`${origin}${BASE}/jobs/${shop.failed}`);
    await page.getByText('Times are local, UTC+05:30.').waitFor();
    expect(await page.locator('[data-zone]').count()).toBe(1);
    const time = page.locator('.timeline time').first();
    const at = new Date(String(await time.getAttribute('datetime')));
    expect(await time.getAttribute('datetime')).toBe(at.toISOString());
    const inKolkata = new Date(at.getTime() + 5.5 * 3_600_000).toISOString();
    expect(await time.textContent()).toBe(`${inKolkata.slice(0, 10)} ${inKolkata.slice(11, 19)}`);
    expect(await time.getAttribute('title')).toContain('UTC+05:30');
    // An answer that changes the page does not bring UTC back.
    await page.goto(`${origin}${BASE}/jobs/${shop.running}`);
    await page.getByLabel('Live', { exact: true }).selectOption('1');
    await database.client`update queue_jobs set progress = '0.5' where id = ${shop.running}`;
    await page.getByText('50 %').waitFor();
    expect(await page.locator('.timeline time[title]:not([title*="UTC+05:30"])').count()).toBe(0);
    await page.getByText('Times are local, UTC+05:30.').waitFor();
    await database.client`update queue_jobs set progress = null where id = ${shop.running}`;
    for (const path of ['', '/schedules']) {
      await page.goto(`${origin}${BASE}${path}`);
      await page.getByText('Times are local, UTC+05:30.').waitFor();
    }
    await context.close();
  });

  test.each([320, 390, 760, 761, 1000, 1440])('at %i px the live control covers nothing', async (width) => {
    const { page, context } = await openPage(browser, origin, { width, colorScheme: 'light' });
    for (const [name, path] of Object.entries(pages())) {
      await page.goto(`${origin}${BASE}${path}`);
      await page.locator('#live:not([hidden])').waitFor();
      expect(await covered(page), name).toEqual([]);
    }
    await context.close();
  });

  test('at 390 px every figure of a queue has its name', async () => {
    const { page, context } = await openPage(browser, origin, { width: 390, colorScheme: 'light' });
    for (const path of ['', '/queues']) {
      await page.goto(`${origin}${BASE}${path}`);
      const row = page.locator('tr[data-row]').first();
      const labels = await row
        .locator('td')
        .evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell, '::before').content));
      expect(labels.join(' ')).toMatch(/"due " "running " "scheduled " "waiting " "lag " "workers "/);
    }
    await page.goto(`${origin}${BASE}/limits`);
    const ofLimit = await page
      .locator('tbody tr')
      .first()
      .locator('td')
      .evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell, '::before').content));
    expect(ofLimit.join(' ')).toMatch(/"declared " "set " "in use "/);
    await context.close();
  });

  test.each([390, 1100, 1440])('at %i px tiles and choices stand side by side', async (width) => {
    const { page, context } = await openPage(browser, origin, { width, colorScheme: 'light' });
    const inRows = async (path: string, selector: string) => {
      await page.goto(`${origin}${BASE}${path}`);
      const tops = await page
        .locator(selector)
        .evaluateAll((elements) => elements.map((element) => element.getBoundingClientRect().top));
      return [...new Set(tops)].map((top) => tops.filter((each) => each === top).length);
    };
    expect(await inRows('', '.tile')).toEqual(width === 390 ? [2, 2, 2] : width === 1100 ? [3, 3] : [6]);
    const [hours = 0] = await inRows('/errors', 'main .chips li');
    expect(hours).toBeGreaterThanOrEqual(width === 390 ? 2 : 4);
    await context.close();
  });

  /** Four sizes and schemes, and the keyboard alone. */
  const ways = [
    { width: 390, colorScheme: 'light' },
    { width: 390, colorScheme: 'dark' },
    { width: 1440, colorScheme: 'light' },
    { width: 1440, colorScheme: 'dark' },
    { width: 1440, colorScheme: 'light', keyboard: true },
    { width: 390, colorScheme: 'dark', keyboard: true },
  ] as const;

  describe.each(ways)(
    'from the overview, in four clicks at most: %o',
    ({ keyboard = false, ...screen }: Way) => {
      const MOST = 4;

      /** Somebody who counts what they press. Typing is no click, and Enter on a link or a button is one. */
      const visit = async (run: (visitor: Visitor) => Promise<void>) => {
        const { page, context, complaints } = await openPage(browser, origin, screen);
        let clicks = 0;
        const press = async (target: Locator) => {
          clicks++;
          if (!keyboard) return await target.click();
          await tabTo(page, target);
          await page.keyboard.press('Enter');
        };
        const search = async (words: string) => {
          const filter = page.getByLabel('Filter jobs');
          if (keyboard) await page.keyboard.press('/');
          else await filter.click();
          clicks++;
          await page.keyboard.type(words);
          await page.keyboard.press('Enter');
        };
        try {
          await page.goto(`${origin}${BASE}`);
          await run({ page, press, search });
          expect(clicks).toBeLessThanOrEqual(MOST);
          expect(complaints).toEqual([]);
        } finally {
          await context.close();
        }
      };

      test('the kind that failed most in the last hour', async () => {
        // Another one did so before that.
        await database.client`
          insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
            metadata, created_at, run_at, finished_at)
          select 900000 + n, 'mail', 'send-newsletter', '{}', 'discarded',
            '[{"attempt": 1, "name": "QuotaError", "message": "no quota"}]', 1, 1, 5, 1, '{}', t.at, t.at, t.at
          from generate_series(1, 300) as n, lateral (select now() - interval '3 h' as at) as t`;
        try {
          await visit(async ({ page, press }) => {
            await press(page.getByRole('link', { name: /^Discarded/ }));
            const first = page.locator('.group').first();
            await first.getByRole('link', { name: 'send-receipt' }).waitFor();
            expect(await first.innerText()).toMatch(/^\d+\s+jobs[\s\S]*MailboxError/);
            await press(first.getByRole('link', { name: 'send-receipt' }));
            await page.locator('tr[data-row]').first().waitFor();
            expect(await page.locator('tr[data-row]').first().innerText()).toContain('MailboxError');
          });
        } finally {
          await database.client`delete from queue_results where kind = 'send-newsletter'`;
        }
      });

      test("one customer's job", async () => {
        await visit(async ({ page, press, search }) => {
          await press(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Jobs' }));
          await page.waitForURL('**/jobs');
          await search('payload.customer.email:c7@example.com kind:charge-card');
          await page.waitForURL(/c7/);
          await press(page.locator('tr[data-row] .row-link').first());
          await page.getByRole('heading', { level: 2, name: 'Payload' }).waitFor();
          expect(await page.locator('main').innerText()).toContain('"c7@example.com"');
        });
      });

      test('why a queue stands still', async () => {
        await database.client`
        insert into queue_jobs (queue, kind, payload, run_at, max_attempts)
        values ('exports', 'export', '{}', now() - interval '2 minutes', 3),
          ('reports', 'nightly-report', '{}', now() - interval '2 minutes', 3)`;
        answer = toNode(newDashboard());
        await visit(async ({ page, press }) => {
          await press(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Queues' }));
          const row = (name: string) => page.locator('tr[data-row]', { hasText: name });
          expect(await row('reports').innerText()).toMatch(/paused 2 h/);
          expect(await row('exports').innerText()).toContain('no worker');
          await press(
            page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Overview' }),
          );
          await page.getByText("of 'export' in 'exports' has been due").first().waitFor();
        });
        await database.client`delete from queue_jobs where queue in ('exports', 'reports')`;
      });

      test('and run it again', async () => {
        await visit(async ({ page, press }) => {
          await press(page.getByRole('link', { name: /^Discarded/ }));
          await press(
            page
              .locator('.group')
              .first()
              .getByRole('link', { name: /^newest #/ }),
          );
          await page.waitForURL(/jobs\/\d+$/);
          const id = Number(page.url().split('/').at(-1));
          await database.client`create table before as select * from queue_results where job_id = ${id}`;
          await press(page.getByRole('button', { name: `Redrive job ${id}` }));
          await page.getByText('Put back, due now: 1 job.').first().waitFor();
          expect(await stateOf(id)).toBe('due');
          await database.client`delete from queue_jobs where id = ${id}`;
          await database.client`insert into queue_results select * from before`;
          await database.client`drop table before`;
        });
      });
    },
  );

  test('every page is read and used without a script', async () => {
    const { page, context, complaints } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'light',
      javaScriptEnabled: false,
    });
    for (const path of Object.values(pages())) await page.goto(`${origin}${BASE}${path}`);
    await page.goto(`${origin}${BASE}`);
    expect(await page.locator('.plot svg rect').count()).toBeGreaterThan(20);
    expect(await page.locator('#live').isHidden()).toBe(true);
    await page.goto(`${origin}${BASE}/queues`);
    await page.getByRole('button', { name: 'Pause queue mail' }).click();
    await page.getByText('Paused. Running jobs continue').waitFor();
    await page.getByRole('button', { name: 'Resume queue mail' }).click();
    await page.getByText('Resumed.').waitFor();
    expect(await queue.paused(database.db)).toHaveLength(1);
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
    await context.close();
  });

  test('by keyboard: a group of errors is redriven, a queue paused, a job found', async () => {
    const { page, context, complaints } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'dark',
    });
    await page.goto(`${origin}${BASE}/errors`);
    // The last group, of three jobs.
    for (let row = 0; row < 4; row++) await page.keyboard.press('j');
    await page.keyboard.press('r');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toContain('Redrive this group');
    await page.keyboard.press('Enter');
    await page.getByText('Put back, due now: 3 jobs.').first().waitFor();
    await page.goto(`${origin}${BASE}/queues`);
    await page.keyboard.press('j');
    await page.keyboard.press('p');
    await page.keyboard.press('Enter');
    await page.getByText('Paused. Running jobs continue').first().waitFor();
    expect((await queue.paused(database.db)).map(({ queue }) => queue)).toEqual(['mail', 'reports']);
    await queue.resume(database.db, 'mail');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.waitForURL('**/jobs');
    await page.keyboard.press('/');
    await page.keyboard.type('payload.orderId:91207');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: `ship-parcel #${shop.retrying}` }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: `ship-parcel #${shop.retrying}` }).waitFor();
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('by keyboard: jobs are selected and cancelled, and the page keeps still meanwhile', async () => {
    const { page, context, complaints } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'light',
    });
    const ids = await database.client<{ id: string }[]>`
      insert into queue_jobs (queue, kind, payload, run_at, max_attempts)
      select 'reports', 'selected', '{}', now() + interval '1 day', 3 from generate_series(1, 3) returning id`;
    const [first, second, third] = ids.map(({ id }) => Number(id));
    await page.clock.install();
    await page.goto(`${origin}${BASE}/jobs?q=kind%3Aselected`);
    await page.getByLabel('Live', { exact: true }).selectOption('1');
    const live = page.waitForResponse((answer) => answer.url().endsWith('kind%3Aselected'));
    await page.clock.runFor(2_000);
    await (await live).finished();
    for (const key of ['j', 'x', 'j', 'j', 'x']) await page.keyboard.press(key);
    expect(await page.locator('[data-selected]').textContent()).toBe('2');
    expect(await violations(page)).toEqual([]);
    // While something is chosen an answer tells only whether the page may still be seen: it takes no tick away.
    const asked = page.waitForResponse((answer) => answer.url().endsWith('kind%3Aselected'));
    await database.client`update queue_jobs set priority = 4 where kind = 'selected'`;
    await page.clock.runFor(30_000);
    // Not until it is finished: the next question may have ended it.
    await asked;
    expect(await page.locator('input[name=id]:checked').count()).toBe(2);
    await page.getByRole('button', { name: 'Cancel…' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('of 2 jobs selected').waitFor();
    await page.getByRole('button', { name: 'Cancel 2 jobs' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('2 jobs are cancelled, or told to stop.').first().waitFor();
    expect(await stateOf(third)).toBe('cancelled');
    expect(await stateOf(second)).toBe('scheduled');
    expect(await stateOf(first)).toBe('cancelled');
    await page.goto(`${origin}${BASE}/jobs?q=kind%3Aselected+state%3Ascheduled`);
    await page.getByLabel('Select all jobs of this page').check();
    await page.getByRole('button', { name: 'Run now…' }).click();
    await page.getByRole('button', { name: 'Run now: 1 job' }).click();
    await page.getByText('Due now: 1 job.').first().waitFor();
    expect(await stateOf(second)).toBe('due');
    await database.client`delete from queue_jobs where kind = 'selected'`;
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('without a script: all that match are redriven, and a limit is set', async () => {
    const { page, context, complaints } = await openPage(browser, origin, {
      width: 320,
      colorScheme: 'dark',
      javaScriptEnabled: false,
    });
    await page.goto(`${origin}${BASE}/jobs?q=state%3Adiscarded+payload.orderId%3A70001`);
    await page.getByLabel('all that match this filter').check();
    await page.getByRole('button', { name: 'Redrive…' }).click();
    await page.getByText('jobs match').waitFor();
    await page.getByRole('link', { name: 'Back' }).click();
    await page.goto(`${origin}${BASE}/limits`);
    await page.getByText('Change').first().click();
    await page.getByLabel('At once').first().fill('12');
    await page.getByRole('button', { name: 'Set for the queue of payments' }).click();
    await page.getByText('The limit is set.').waitFor();
    await page.getByText('12 at once').waitFor();
    await queue.limits.set(database.db, { queue: 'payments' }, null);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('what changes is seen without a reload, and what one has opened stays open', async () => {
    const { page, context, complaints } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'light',
    });
    await page.goto(`${origin}${BASE}/jobs/${shop.running}`);
    await page.getByLabel('Live', { exact: true }).selectOption('1');
    const running = page.locator('time[data-tick=since]').first();
    const before = await running.textContent();
    await page.waitForFunction(
      (text) => document.querySelector('time[data-tick=since]')?.textContent !== text,
      before,
    );
    await database.client`update queue_jobs set progress = '0.25' where id = ${shop.running}`;
    await page.getByText('25 %').waitFor();
    await database.client`update queue_jobs set progress = '0.75' where id = ${shop.running}`;
    await page.getByText('75 %').waitFor();
    await page.goto(`${origin}${BASE}/jobs/${shop.fulfilling}`);
    const charge = page.locator('#step-1-output');
    await charge.locator('summary').click();
    await database.client`
      update queue_steps set ended_at = now(), output = '{"by": "Ada"}'
      where job_id = ${shop.fulfilling} and name = 'approval'`;
    await page.locator('#step-5').getByText('received').waitFor();
    // What the viewer has opened stays open.
    expect(await charge.getAttribute('open')).not.toBeNull();
    await page.getByText('"ch_3PqLkd"').waitFor();
    await page.goto(`${origin}${BASE}/database`);
    await page.getByText('What to do').first().click();
    // Figures may be new each time, or the same for minutes. The second answer shows that the first has been drawn.
    for (let answers = 0; answers < 2; answers++)
      await page.waitForResponse((answer) => answer.url().endsWith('/database'));
    expect(await page.locator('details[open]').count()).toBe(1);
    await page.goto(`${origin}${BASE}/jobs/${shop.failed}`);
    await page.waitForResponse((answer) => answer.status() === 304);
    await page.goto(`${origin}${BASE}`);
    await page.locator('.uplot').nth(2).waitFor();
    await queue.pause(database.db, 'parcels');
    await page.getByRole('button', { name: 'Resume queue parcels' }).waitFor();
    expect(await page.locator('.uplot').count()).toBe(3);
    expect(await page.locator('.plot > svg').count()).toBe(0);
    await queue.resume(database.db, 'parcels');
    await page.getByRole('button', { name: 'Pause queue parcels' }).waitFor();
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('a job goes on from a step in a new one, once that is confirmed', async () => {
    const { page, context, complaints } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'light',
    });
    await page.goto(`${origin}${BASE}/jobs/${shop.fulfilling}`);
    const fork = page.getByRole('button', { name: 'Fork from here , step reserve' });
    expect(await fork.isVisible()).toBe(false);
    await page.locator('#step-2 .asking summary').click();
    await fork.click();
    await page.locator('#notice', { hasText: 'This is the new job. Steps taken over: 1.' }).waitFor();
    expect(page.url()).not.toContain(`/jobs/${shop.fulfilling}`);
    await page.getByText('charge-91300').first().waitFor();
    const id = Number(/\d+$/.exec(new URL(page.url()).pathname)?.[0]);
    expect((await queue.cancel(database.db, id)).cancelled).toBe(true);
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('nothing is asked while the page is hidden or live is off', async () => {
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    let asked = 0;
    await page.goto(`${origin}${BASE}/queues`);
    await page.getByLabel('Live', { exact: true }).selectOption('1');
    await page.waitForResponse((answer) => answer.url().endsWith('/queues'));
    page.on('request', () => asked++);
    await page.getByLabel('Live', { exact: true }).selectOption('0');
    await page.clock.install();
    await page.clock.runFor(30_000);
    expect(asked).toBe(0);
    await context.close();
  });

  test(`${HISTORY} jobs are browsed and searched`, async () => {
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    await page.goto(`${origin}${BASE}/jobs?q=state%3Acompleted`);
    for (let count = 0; count < 5; count++) {
      const last = await page.locator('[data-row]').last().getAttribute('id');
      await page.getByRole('link', { name: 'Older' }).click();
      await page.waitForFunction((id) => document.getElementById(id ?? '') === null, last);
    }
    const from = Date.now();
    await page.goto(`${origin}${BASE}/jobs?q=payload.orderId%3A40017`);
    // It is older than what one page reads, which the page says.
    await page.getByText('Searched the newest 100,000').waitFor();
    console.log(`a payload was searched among ${HISTORY} results in ${Date.now() - from} ms`);
    await page.getByRole('link', { name: 'Continue searching' }).click();
    await page.getByText('#17', { exact: true }).waitFor();
    await context.close();
  });

  test('screenshots for the docs', async () => {
    const folder = fileURLToPath(new URL('../../docs/dashboard/', import.meta.url));
    mkdirSync(folder, { recursive: true });
    await database.client`
      update queue_jobs set run_at = now() - id % 40 * interval '170 ms' where worker_id is null and run_at < now()`;
    await database.client`update queue_jobs set run_at = now() + interval '42 s' where id = ${shop.retrying}`;
    await database.client`update queue_workers set seen_at = now()`;
    answer = toNode(newDashboard());
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, context } = await openPage(browser, origin, { width: 1100, height: 720, colorScheme });
      for (const name of ['overview', 'job', 'errors'] as const) {
        await page.goto(`${origin}${BASE}${pages()[name]}`);
        if (name === 'overview') await page.locator('.uplot').nth(2).waitFor();
        const path = `${folder}${name}-${colorScheme}.png`;
        await page.screenshot({ path });
        expect(statSync(path).size).toBeLessThan(120_000);
      }
      await context.close();
    }
  });
});

interface Way extends Screen {
  readonly keyboard?: boolean;
}

/** Somebody on the way to something. */
interface Visitor {
  readonly page: Page;
  press(target: Locator): Promise<void>;
  search(words: string): Promise<void>;
}

/** Moves the focus to an element as a keyboard does. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let tabs = 0; tabs < 200; tabs++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`the keyboard does not reach ${target}`);
}

/** Which links and buttons the live control stands over, wherever the page is scrolled to. */
async function covered(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const found: string[] = [];
    const live = document.querySelector('#live');
    for (const each of document.querySelectorAll('a, button, input, select, summary')) {
      if (live === null || live.contains(each) || each.matches('.skip')) continue;
      each.scrollIntoView({ block: 'end' });
      const [one, other] = [each.getBoundingClientRect(), live.getBoundingClientRect()];
      const isApart =
        one.right <= other.left ||
        other.right <= one.left ||
        one.bottom <= other.top ||
        other.bottom <= one.top;
      if (!isApart && one.width > 0) found.push(each.outerHTML.slice(0, 80));
    }
    return found;
  });
}

async function stateOf(id: number | undefined): Promise<string | undefined> {
  return (await queue.find(database.db, Number(id)))?.state;
}

async function sideways(page: Page): Promise<number> {
  return await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
}

/** What axe finds on a page, in one line each. */
async function violations(page: Page): Promise<string[]> {
  // Not as a script of the page: its policy does not concern what the test itself runs.
  await page.evaluate(await axe);
  const found = await page.evaluate(async () => {
    const { violations } = await Reflect.get(globalThis, 'axe').run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    });
    return violations;
  });
  return found.map(
    ({ id, nodes }: { id: string; nodes: { html: string; failureSummary: string }[] }) =>
      `${id}: ${nodes
        .map(({ html, failureSummary }) => `${html.slice(0, 140)} ${failureSummary}`)
        .join(' | ')
        .slice(0, 700)}`,
  );
}
