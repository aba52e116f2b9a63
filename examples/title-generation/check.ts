/**
 * Users start chats in the app as `npm run build` has left it, on an empty database that DATABASE_URL names. Two workers ask a model that
 * fails on plan. Exits with 1 unless each chat has its title and the model was asked as the limits say.
 */
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { Browser } from './check/browser';
import { openModel } from './check/model';
import { freePort, killAll, start } from './check/programs';
import { client, db } from './lib/database';
import { chats, queueJobs, queueResults, queueWorkers } from './lib/schema';

const KEY = 'key-of-the-check';
const USERS = ['ada', 'ben', 'cleo', 'dan'];
const TOPICS = ['tea', 'a busy model', 'a broken model', 'an empty answer', 'forbidden things'];

async function check(): Promise<void> {
  await migrate(db, { migrationsFolder: 'drizzle' });
  const model = await openModel(KEY);
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const env = { LLM_URL: model.url, LLM_KEY: KEY };
  const app = start(['node_modules/next/dist/bin/next', 'start', '-H', '127.0.0.1', '-p', String(port)], env);
  const workers = [1, 2].map(() => start(['node_modules/tsx/dist/cli.mjs', 'worker.ts'], env));
  const browsers = USERS.map((user) => new Browser(origin, user));
  await until('the app answers', async () => {
    const page = await browsers[0]?.open('/').catch(() => undefined);
    return page?.status === 200;
  });
  await until('the workers have started', async () => (await db.$count(queueWorkers)) === workers.length);

  const begun = browsers.flatMap((browser) =>
    TOPICS.map(async (topic) => {
      const text = `${topic} of ${browser.user}`;
      const path = await browser.send(await browser.open('/'), { text });
      return { browser, path, text, page: await browser.open(path) };
    }),
  );
  const pages = await Promise.all(begun);
  const [tea] = pages;
  if (tea === undefined) throw new Error('There is no chat');
  const stranger = await new Browser(origin, 'eve').open(tea.path);

  // While the model thinks, its user asks for another title again and again.
  const waiting = await tea.browser.send(await tea.browser.open('/'), { text: 'wait a moment' });
  await until('the model thinks', () => model.requests.some(({ message }) => message === 'wait a moment'));
  const form = openHead(tea.browser, waiting);
  for (let click = 0; click < 3; click++) await tea.browser.send(await form, {});
  model.release();
  const waited = await tea.browser.open(waiting);
  await until('all jobs end', async () => (await db.$count(queueJobs)) === 0);

  // The list knows the titles; and another title is another job.
  const list = await tea.browser.open('/');
  await tea.browser.send(await tea.browser.open(tea.path), {});
  const again = await tea.browser.open(tea.path);

  const codes: (number | null)[] = [];
  for (const worker of workers) codes.push(await worker.stop());
  await app.stop();
  model.close();

  const forbidden = pages.filter(({ text }) => text.includes('forbidden'));
  const titled = pages.filter(({ page, text }) => page.html.includes(`<span>About ${text}</span>`));
  const untitled = pages.filter(({ page }) => page.html.includes('<span>Untitled</span>'));
  const streamed = titled.filter(({ page: { html }, text }) => {
    return (
      html.indexOf('<i>New chat</i>') >= 0 &&
      html.indexOf('<i>New chat</i>') < html.indexOf(`<span>About ${text}`)
    );
  });
  const asked = (part: string) => model.requests.filter(({ message }) => message.includes(part));
  const results = await db.select().from(queueResults);
  const impatient = model.requests.filter(({ status, message, at }) => {
    const next = model.requests.find((one) => one.message === message && one.at > at);
    return status === 429 && next !== undefined && next.at - at < 1_000;
  });
  const chatCount = USERS.length * TOPICS.length + 1;
  addUp([
    ['Chats', chatCount, await db.$count(chats)],
    ['Pages that came with their title', pages.length - forbidden.length, titled.length],
    ['… after a first part without it', true, streamed.length > 0],
    ['Pages of what the model refuses', forbidden.length, untitled.length],
    ["A stranger's look at a chat", 404, stranger.status],
    ['Times that the model was asked while three asked for another title', 1, asked('wait a moment').length],
    ['… and the page has it', true, waited.html.includes('<span>About wait a moment</span>')],
    ['Titles in the list of a user', TOPICS.length, list.html.match(/>About /g)?.length],
    ['Times that the model was asked for a title and another one', 2, asked('tea of ada').length],
    ['… and the page has it', true, again.html.includes('<span>About tea of ada</span>')],
    ['Requests under way at once, at most three', true, model.most.all <= 3],
    ['… of one user', 1, model.most.ofOneUser],
    ['Requests put off by 429', USERS.length, asked('busy').filter(({ status }) => status === 429).length],
    ['… and sent again before their time', 0, impatient.length],
    [
      'Attempts that 429 has spent',
      0,
      results.filter(({ errors }) => JSON.stringify(errors).includes('Rate')).length,
    ],
    [
      'Attempts that have failed: broken, empty, forbidden',
      3 * USERS.length,
      results.flatMap(({ errors }) => errors).length,
    ],
    ['Jobs discarded', forbidden.length, results.filter(({ state }) => state === 'discarded').length],
    ['Jobs in all', chatCount + 1, results.length],
    ['Exit codes of the workers', '0 0', codes.join(' ')],
  ]);
  console.log('Each chat has its title, and the model was asked as the limits say.');
}

/** The first part of a page, which has its forms; the rest waits for the title. */
async function openHead(browser: Browser, path: string) {
  const url = new URL(path, browser.origin).href;
  const response = await fetch(url, { headers: { cookie: `user=${browser.user}` } });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let html = '';
  while (!html.includes('</form>')) {
    const part = await reader?.read();
    if (part === undefined || part.done) throw new Error(`The page has no form: ${html}`);
    html += part.value;
  }
  await reader?.cancel();
  return { url, status: response.status, html };
}

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 90_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Not within 90 seconds: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function addUp(numbers: readonly (readonly [what: string, expected: unknown, found: unknown])[]): void {
  const wrong = numbers.filter(([, expected, found]) => expected !== found);
  for (const [what, expected, found] of numbers) {
    console.log(expected === found ? `✓ ${what}: ${found}` : `✗ ${what}: ${found}, not ${expected}`);
  }
  if (wrong.length > 0) throw new Error(`${wrong.length} of ${numbers.length} numbers do not add up`);
}

check()
  .catch((error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  })
  .finally(async () => {
    killAll();
    await client.end();
  });
