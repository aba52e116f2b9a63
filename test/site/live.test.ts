import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { homepage, root } from '../../site/repository.ts';
import { chromiumPath, launch, openPage, type Screen } from '../browser/support/chromium.ts';
import { serveSite } from './support/serve-site.ts';

const axe = readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8');

describe.skipIf(chromiumPath === undefined)('the live page', () => {
  let browser: Browser;
  let site: Awaited<ReturnType<typeof serveSite>>;

  beforeAll(async () => {
    site = await serveSite();
    browser = await launch();
  });

  afterAll(async () => {
    await browser?.close();
    site?.close();
  });

  /** What a visitor wrote is a module of the browser's own. */
  const ofHandlers = () => `request: blob:${site.origin}/`;

  async function openLive(screen: Screen) {
    const opened = await openPage(browser, site.origin, screen);
    await opened.page.goto(`${site.origin}${homepage.pathname}live`);
    // The handler is there once the page works.
    await opened.page.waitForFunction(
      () => Reflect.get(document.getElementById('handler') ?? {}, 'value') !== '',
    );
    return opened;
  }

  test('enqueues, rolls back, works, survives a kill, and takes another handler', async () => {
    const { page, context, complaints } = await openLive({ width: 1280, colorScheme: 'light' });
    await press(page, 'Start PostgreSQL in this page');
    await says(page, 'status', /Runs here: PostgreSQL 1\d/);

    await press(page, 'Order, and enqueue');
    await says(page, 'app-says', 'Committed: job 1');
    await rowsOf(page, 'jobs', (rows) => rows.length === 1 && rows[0]?.[2] === 'due');
    await press(page, 'The same, and roll back');
    await says(page, 'app-says', 'Rolled back (the card was declined)');
    expect(await readRows(page, 'orders')).toHaveLength(1);

    // One handler that waits until it is killed, so that the kill surely comes in the middle of a job.
    await useHandler(page, 'export default () => new Promise(() => undefined);');
    await press(page, 'Start a worker');
    await rowsOf(page, 'jobs', ([row]) => row?.[2] === 'running' && row[3] === 'worker-1' && row[4] === '1');
    await useHandler(page, "export default ({ payload }) => 'for ' + payload.item + ', by the second';");
    await press(page, 'Start a worker');
    await rowsOf(page, 'registered', (rows) => rows.length === 2);
    await press(page, 'Kill worker-1');
    // Nobody has said goodbye: its row is still there, and its job still held.
    expect(await readRows(page, 'registered')).toHaveLength(2);
    const [ended] = await rowsOf(page, 'results', (rows) => rows.length === 1);
    expect(ended?.slice(0, 4)).toEqual(['1', 'completed', '"for tea, by the second"', '2']);
    // The page reads its tables one after the other.
    await rowsOf(page, 'jobs', (rows) => rows.length === 0);
    expect(await page.locator('#log').textContent()).toContain('worker-2');

    // A job that comes later gets what the visitor has written meanwhile, in the same worker.
    await useHandler(page, 'export default ({ job }) => ({ edited: job.attempt });');
    await says(page, 'handler-says', 'Used from the next attempt on.');
    await press(page, 'Order, and enqueue');
    const [newest] = await rowsOf(page, 'results', (rows) => rows.length === 2);
    expect(newest?.slice(1, 4)).toEqual(['completed', '{"edited":1}', '1']);

    await useHandler(page, 'export default (');
    await says(page, 'handler-says', /SyntaxError/);
    await press(page, 'Stop worker-2');
    await rowsOf(page, 'registered', (rows) => rows.length === 0);
    expect(complaints.filter((complaint) => !complaint.startsWith(ofHandlers()))).toEqual([]);
    await context.close();
  });

  test.each<Screen>([
    { width: 320, colorScheme: 'light' },
    { width: 320, colorScheme: 'dark' },
    { width: 1280, colorScheme: 'light' },
    { width: 1280, colorScheme: 'dark' },
  ])('is clean at $width px, $colorScheme, and used by keyboard alone', async (screen) => {
    const { page, context, complaints } = await openLive(screen);
    await byKeyboard(page, 'Start PostgreSQL in this page');
    await says(page, 'status', /Runs here/);
    await byKeyboard(page, 'Order, and enqueue');
    await rowsOf(page, 'jobs', (rows) => rows.length === 1);
    await byKeyboard(page, 'Start a worker');
    await rowsOf(page, 'jobs', ([row]) => row?.[2] === 'running');
    const sideways = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect(sideways).toBe(0);
    expect(await violations(page)).toEqual([]);
    await byKeyboard(page, 'Kill worker-1');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('start-worker');
    expect(complaints.filter((complaint) => !complaint.startsWith(ofHandlers()))).toEqual([]);
    await context.close();
  });
});

async function press(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click();
}

async function byKeyboard(page: Page, name: string): Promise<void> {
  const button = page.getByRole('button', { name, exact: true });
  await button.focus();
  await page.keyboard.press('Enter');
}

async function useHandler(page: Page, text: string): Promise<void> {
  await page.locator('#handler').fill(text);
  await press(page, 'Use this handler');
}

async function says(page: Page, id: string, text: string | RegExp): Promise<void> {
  await page.locator(`#${id}`).filter({ hasText: text }).waitFor({ timeout: 120_000 });
}

/** The texts of a table's cells, row by row. */
async function readRows(page: Page, id: string): Promise<string[][]> {
  return await page
    .locator(`#${id} tbody tr`)
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent ?? '')));
}

/** Waits for the table to hold such rows; the library's own time limits are seconds, and machines are slow. */
async function rowsOf(page: Page, id: string, are: (rows: string[][]) => boolean): Promise<string[][]> {
  let rows: string[][] = [];
  const readAgain = async () => {
    rows = await readRows(page, id);
    return are(rows);
  };
  await expect.poll(readAgain, { timeout: 120_000, message: `#${id}` }).toBe(true);
  return rows;
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return await page.evaluate(async () => {
    const { violations: found } = await Reflect.get(globalThis, 'axe').run();
    return found.map(
      ({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes.map(({ html }) => html)}`,
    );
  });
}
