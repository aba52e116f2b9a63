import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createQueue } from 'drizzle-queue';
import { createDashboard, toNode } from 'drizzle-queue/dashboard';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { chromiumPath, launch, openPage } from './support/chromium.ts';

const database = useTestDatabase();

let server: Server;
let browser: Browser;
let origin: string;

describe.skipIf(chromiumPath === undefined)('the charts of an app whose first jobs have just ended', () => {
  beforeAll(async () => {
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
        fence, metadata, created_at, run_at, claimed_at, finished_at)
      select 1, 'mail', 'send-receipt', '{}', 'completed', '[]', 1, 20, 5, 1, '{}', ended - interval '3 s',
        ended - interval '3 s', ended - interval '2 s', ended
      from (select date_trunc('minute', now()) - interval '10 min' as ended)`;
    const dashboard = createDashboard({ db: database.db, queue: createQueue(), authorize: () => 'read' });
    const answer = toNode(dashboard);
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

  test('a minute alone is a dot: a line through it has no length', async () => {
    const { page, context, complaints } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'light',
    });
    try {
      await page.goto(`${origin}/`);
      const charts = page.locator('[data-chart*=\'"shape":"lines"\'] canvas');
      await charts.nth(1).waitFor();
      expect(await charts.count()).toBe(2);
      // A line and a grid are grey; only the dots of the percentiles have a colour.
      const coloured = async () =>
        await charts.evaluateAll((canvases) =>
          canvases.map((canvas) => {
            if (!(canvas instanceof HTMLCanvasElement)) return 0;
            const pixels =
              canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
            let found = 0;
            for (let at = 0; at < pixels.length; at += 4) {
              const colour = [pixels[at] ?? 0, pixels[at + 1] ?? 0, pixels[at + 2] ?? 0];
              if ((pixels[at + 3] ?? 0) > 128 && Math.max(...colour) - Math.min(...colour) > 80) found++;
            }
            return found;
          }),
        );
      await expect.poll(async () => Math.min(...(await coloured()))).toBeGreaterThan(0);
      expect(complaints).toEqual([]);
    } finally {
      await context.close();
    }
  });

  test('the same without a script', async () => {
    const { page, context } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'light',
      javaScriptEnabled: false,
    });
    try {
      await page.goto(`${origin}/`);
      const lines = page.locator('[data-chart*=\'"shape":"lines"\'] polyline');
      expect(await lines.count()).toBeGreaterThan(0);
      for (const line of await lines.all()) {
        const [from, to, ...rest] = (await line.getAttribute('points'))?.split(' ') ?? [];
        expect(to).toBe(from);
        expect(rest).toEqual([]);
        expect(await line.evaluate((drawn) => getComputedStyle(drawn).strokeLinecap)).toBe('round');
      }
    } finally {
      await context.close();
    }
  });
});
