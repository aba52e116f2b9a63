import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createQueue } from 'drizzle-queue';
import { createDashboard, toNode } from 'drizzle-queue/dashboard';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addJob } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { chromiumPath, launch, openPage } from './support/chromium.ts';

/** As inside of a network: browsers trust this name less than localhost, and do not say where a request is from. */
const HOST = 'queue.internal';

const database = useTestDatabase();
let server: Server;
let browser: Browser;
let origin: string;
const sites: (string | undefined)[] = [];

describe.skipIf(chromiumPath === undefined)('without TLS, under the name of a host', () => {
  beforeAll(async () => {
    const answer = toNode(
      createDashboard({
        db: database.db,
        queue: createQueue(),
        authorize: () => ({ can: 'write' }),
        onAction: () => {},
      }),
    );
    server = createServer((request, response) => {
      if (request.method === 'POST') sites.push(request.headers['sec-fetch-site']?.toString());
      answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // It listens on a port.
    origin = `http://${HOST}:${(server.address() as AddressInfo).port}`;
    browser = await launch([`--host-resolver-rules=MAP ${HOST} 127.0.0.1`]);
  });

  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  test('the forms of its pages are its own', async () => {
    await addJob(database.client);
    const { page, context } = await openPage(browser, origin, { width: 1280, colorScheme: 'light' });
    try {
      await page.goto(`${origin}/queues`);
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByRole('button', { name: 'Resume' }).waitFor();
      // Otherwise this would test nothing.
      expect(sites).toEqual([undefined]);
    } finally {
      await context.close();
    }
  });
});
