import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createQueue } from 'drizzle-queue';
import { createDashboard, toNode } from 'drizzle-queue/dashboard';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { addJob, clearTables, fillJobs } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { chromiumPath, launch, openPage } from './support/chromium.ts';

const database = useTestDatabase();
const queue = createQueue();

let server: Server;
let browser: Browser;
let origin: string;

describe.skipIf(chromiumPath === undefined)('an action with many jobs', () => {
  beforeAll(async () => {
    const dashboard = createDashboard({
      db: database.db,
      queue,
      authorize: () => ({ can: 'write' }),
      onAction: () => {},
    });
    const answer = toNode(dashboard);
    server = createServer((request, response) => answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // It listens on a port.
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await launch();
  });

  beforeEach(() => clearTables(database.client));

  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  test('does not go on over a click that is being answered', async () => {
    await fillJobs(database.client, 1_000);
    const last = await addJob(database.client);
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin
        raise exception 'out of memory' using errcode = '53200'; end $$;
      create trigger refuse before delete on queue_jobs for each row when (old.id = ${last}) execute function refuse()`);
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    let posts = 0;
    page.on('request', (request) => {
      if (request.url().includes('/actions/')) posts++;
    });
    // The page behind the link takes longer to come than the timer that goes on.
    await page.route(
      (url) => url.pathname === '/jobs',
      async (route) => {
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        await route.continue();
      },
    );
    try {
      await page.goto(`${origin}/jobs/many?action=cancel&of=all&q=`);
      // Pressed as soon as it is there: the timer has half a second.
      await page.addInitScript(() => {
        document.addEventListener('DOMContentLoaded', () => {
          const links = [...document.querySelectorAll('a')];
          links.find(({ textContent }) => textContent === 'Stop here')?.click();
        });
      });
      await page.getByRole('button', { name: /^Cancel 1,001 jobs/ }).click();
      await page.waitForURL((url) => url.pathname === '/jobs');
      expect(posts).toBe(1);
    } finally {
      await database.client.unsafe('drop trigger refuse on queue_jobs; drop function refuse()');
      await context.close();
    }
  });

  test('goes on where the user looks at another tab and comes back', async () => {
    await fillJobs(database.client, 1_000);
    // The second batch is refused as by a server without memory, so the first request does not do all.
    const last = await addJob(database.client);
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin
        raise exception 'out of memory' using errcode = '53200'; end $$;
      create trigger refuse before delete on queue_jobs for each row when (old.id = ${last}) execute function refuse()`);
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/actions/')) asked.push(request.method());
    });
    // It goes on when the test says so.
    await page.addInitScript(() => {
      HTMLFormElement.prototype.requestSubmit = () => undefined;
    });
    try {
      await page.goto(`${origin}/jobs/many?action=cancel&of=all&q=`);
      await page.getByRole('button', { name: /^Cancel 1,001 jobs/ }).click();
      await page.locator('form[data-goes-on]').waitFor();
      await database.client.unsafe('drop trigger refuse on queue_jobs; drop function refuse()');
      await page.evaluate(async () => {
        document.dispatchEvent(new Event('visibilitychange'));
        // What it asks for is answered before this.
        for (let n = 0; n < 3; n++) await fetch('/workers');
      });
      expect(await page.title()).toMatch(/^In progress/);
      expect(asked).toEqual(['POST']);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.locator('#notice', { hasText: '1001 jobs are cancelled' }).waitFor();
    } finally {
      await context.close();
    }
  });
});
