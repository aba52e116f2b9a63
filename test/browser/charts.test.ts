import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createQueue } from 'drizzle-queue';
import { createDashboard, type NodeHandler, toNode } from 'drizzle-queue/dashboard';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { chromiumPath, launch, openPage } from './support/chromium.ts';

const database = useTestDatabase();

let server: Server;
let answer: NodeHandler;
let browser: Browser;
let origin: string;

/** With figures of its own: none has been asked for yet. */
const newDashboard = () =>
  toNode(
    createDashboard({
      db: Object.create(database.db) as typeof database.db,
      queue: createQueue(),
      authorize: (request) => (request.url.endsWith('?mail') ? { queues: ['mail'] } : 'read'),
    }),
  );

describe.skipIf(chromiumPath === undefined)('the charts of an app whose first jobs have just ended', () => {
  beforeAll(async () => {
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
        fence, metadata, created_at, run_at, claimed_at, finished_at)
      select n, queue, 'send-receipt', '{}', 'completed', '[]', 1, 20, 5, 1, '{}', ended - interval '3 s',
        ended - interval '3 s', ended - interval '2 s', ended
      from (values (1, 'mail', date_trunc('minute', now()) - interval '10 min'), (2, 'reports', now()))
        as jobs(n, queue, ended)`;
    answer = newDashboard();
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

  test('each minute with jobs is seen: alone, and when it is the newest', async () => {
    const { page, context, complaints } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'light',
    });
    try {
      await page.goto(`${origin}/`);
      const charts = page.locator('[data-chart] canvas');
      await charts.nth(2).waitFor();
      // Axes and grids are grey; only bars and dots have a colour. Each stands apart from the next.
      const seen = async () =>
        await charts.evaluateAll((canvases) =>
          canvases.map((canvas) => {
            if (!(canvas instanceof HTMLCanvasElement)) return 0;
            const { width, height } = canvas;
            const pixels = canvas.getContext('2d')?.getImageData(0, 0, width, height).data ?? [];
            const isColoured = (at: number) => {
              const colour = [pixels[at] ?? 0, pixels[at + 1] ?? 0, pixels[at + 2] ?? 0];
              return (pixels[at + 3] ?? 0) > 128 && Math.max(...colour) - Math.min(...colour) > 80;
            };
            let marks = 0;
            let before = false;
            for (let x = 0; x < width; x++) {
              let here = false;
              for (let y = 0; y < height && !here; y++) here = isColoured((y * width + x) * 4);
              if (here && !before) marks++;
              before = here;
            }
            return marks;
          }),
        );
      await expect.poll(seen, { timeout: 100_000 }).toEqual([2, 2, 2]);
      expect(complaints).toEqual([]);
    } finally {
      await context.close();
    }
  });

  test('the numbers under the cursor are those of the bar that is seen, also after an update', async () => {
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    try {
      await page.goto(`${origin}/`);
      await page.getByLabel('Live', { exact: true }).selectOption('1');
      const chart = page.locator('[data-chart]').first();
      const plot = chart.locator('.u-over');
      await plot.waitFor();
      /** What is told of the minute in which job 1 ended, and what is drawn there. */
      const told = async () => {
        const { series } = JSON.parse(String(await chart.getAttribute('data-chart')));
        const values: number[] = series[0].values;
        const at = values.findIndex((value) => value > 0);
        const { width = 0, height = 0 } = (await plot.boundingBox()) ?? {};
        await plot.hover({ position: { x: 1, y: height / 2 } });
        await plot.hover({ position: { x: ((at + 0.2) / values.length) * width, y: height / 2 } });
        const legend = chart.locator('.u-series', { hasText: 'completed' }).locator('.u-value');
        return { legend: await legend.innerText(), drawn: String(values[at]) };
      };
      await expect.poll(told, { timeout: 20_000 }).toEqual({ legend: '1', drawn: '1' });
      await database.client`
        insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority,
          fence, metadata, created_at, run_at, claimed_at, finished_at)
        select n, queue, kind, '{}', state, errors, 1, 20, 5, 1, '{}', created_at, run_at, claimed_at, finished_at
        from queue_results, generate_series(3, 9) as n where job_id = 1`;
      answer = newDashboard();
      await expect.poll(told, { timeout: 30_000 }).toEqual({ legend: '8', drawn: '8' });
    } finally {
      await context.close();
    }
  });

  test('a minute alone is a dot without a script, too', async () => {
    const { page, context } = await openPage(browser, origin, {
      width: 1280,
      colorScheme: 'light',
      javaScriptEnabled: false,
    });
    try {
      await page.goto(`${origin}/?mail`);
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
