import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import {
  createQueue,
  defineJob,
  defineSignal,
  drain,
  fail,
  handlersFor,
  runNext,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import { createDashboard, type LookOptions, type ShownField } from 'drizzle-queue/dashboard';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, get, page, textOf } from './support/visits.ts';

const database = useTestDatabase();
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const fulfil = defineJob('fulfil', { payload: unvalidated<number>(), queue: 'q' });
const approval = defineSignal('approval', unvalidated<{ readonly by: string }>());
const reminder = defineSignal('reminder');
const part = defineJob('part', { payload: unvalidated<number>(), queue: 'parts', maxAttempts: 1 });

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

function dashboardFor(
  options: Partial<LookOptions & Pick<typeof database, 'db'>> = {},
  of: Pick<typeof queue, 'tables'> = queue,
) {
  // Only what it has differs.
  const shownQueue = of as typeof queue;
  return createDashboard({
    db: another(database.db),
    queue: shownQueue,
    authorize: () => 'write',
    onAction: () => {},
    ...options,
  });
}

async function run(handler: Parameters<typeof handle<typeof fulfil>>[1]): Promise<number> {
  const { id } = await queue.enqueue(database.db, fulfil, 7);
  await drain(database.db, { queue, handlers: [handle(fulfil, handler)], deadlineMs: 20_000 });
  return id;
}

/** Lets parts end, the first of them badly. */
async function endParts(ids: readonly number[], failed: number): Promise<void> {
  for (const [at, id] of ids.entries()) {
    const handler = handle(part, async () => (at < failed ? fail('no page') : undefined));
    await runNext(database.db, { queue, handlers: [handler], id });
  }
}

/** A job that has charged, and waits for its approval for at most a day. */
const waiting = () =>
  run(async ({ step, job }) => {
    await step.run('charge <b>', () => ({ id: 'ch_9007199254740993' }));
    await queue.workflows.signal(database.db, { id: job.id }, reminder);
    await step.waitForSignal(approval, { timeoutMs: 86_400_000, name: 'answer' });
  });

/** The card of steps, as a person reads it. */
async function stepsOn(dashboard: ReturnType<typeof dashboardFor>, id: number): Promise<string> {
  const html = await page(dashboard, `/jobs/${id}`);
  return textOf(
    /<section class="card" aria-labelledby="steps-title">[\s\S]*?<\/section>/.exec(html)?.[0] ?? '',
  );
}

describe('the page of a job with steps', () => {
  test('shows what was done, what it waits for, and what it has not heard', async () => {
    const id = await waiting();
    const html = await page(dashboardFor(), `/jobs/${id}`);
    expect(html).not.toContain('charge <b>');
    const said = textOf(html);
    expect(said).toMatch(/charge <b> run 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d done after \d+ ms , at 20/);
    expect(said).toMatch(/Output \{ "id" : "ch_9007199254740993" \}/);
    expect(said).toMatch(/answer signal 20.* waiting · signal approval · until 20.*\( in 23 h \)/);
    expect(said).toMatch(/Signals that were not received reminder 1 last sent/);
    expect(said).toMatch(/Waits for approval until in 23 h/);
    expect(html).toMatch(/<li class="tone-good" id="step-1">[\s\S]*<li class="tone-later" id="step-2">/);
  });

  test('shows why a step has failed, and its tries', async () => {
    const id = await run(async ({ step }) => {
      await step.run('pay', { attempts: 1 }, () => {
        throw new TypeError('card declined');
      });
    });
    expect(await stepsOn(dashboardFor(), id)).toMatch(
      /pay run .* failed for good after \d+ ms .* TypeError card declined TypeError: card declined at /,
    );
  });

  test('leads to the children that it has enqueued, and counts their ends', async () => {
    const id = await run(async ({ step }) => {
      const children = await step.enqueueMany(
        'pages',
        part,
        Array.from({ length: 12 }, (_, n) => ({ payload: n })),
      );
      await step.allEnded('all pages', children);
    });
    const [first = 0, ...others] = (await queue.list(database.db, { kind: part.kind })).jobs
      .map((job) => job.id)
      .sort((a, b) => a - b);
    const html = await page(dashboardFor(), `/jobs/${id}`);
    expect(html).toContain(`<a href="/jobs/${first}">#${first}</a>`);
    const links = (ids: readonly number[]) => [first, ...ids].map((each) => `#${each}`).join(' , ');
    const said = textOf(html);
    expect(said).toContain(` · ${links(others.slice(0, 9))} and 2 more: 0 of 12 ended`);
    expect(said).toMatch(
      new RegExp(`all pages wait \\S+ \\S+ waiting · ${links(others.slice(0, 2))} and 9 more`),
    );
    expect(said).toContain(`Waits for ${links(others.slice(0, 2))} and 9 more: 0 of 12 ended`);
    await endParts([first, ...others.slice(0, 2)], 1);
    expect(textOf(await page(dashboardFor(), `/jobs/${id}`))).toContain(
      `Waits for ${links(others.slice(0, 2))} and 9 more: 3 of 12 ended, 1 failed`,
    );
    // They may be of other queues than those that this viewer sees.
    const scoped = textOf(await page(dashboardFor({ authorize: () => ({ queues: ['q'] }) }), `/jobs/${id}`));
    expect(scoped).toContain('Waits for children');
    expect(scoped).not.toContain('12 ended');
    await endParts(others.slice(2), 0);
    // They have ended, and the job has not been called yet.
    const ended = textOf(await page(dashboardFor(), `/jobs/${id}`));
    expect(ended).toContain('and 2 more: 12 of 12 ended, 1 failed');
    expect(ended).not.toContain('and 9 more');
  });

  test('says for which of several it waits, and for which child', async () => {
    const id = await run(async ({ step }) => {
      const [one, other, detached] = await Promise.all([
        step.enqueue('one', part, 1),
        step.enqueue('other', part, 2),
        step.enqueue('detached', part, 3, { detached: true }),
      ]);
      await Promise.all([
        step.waitForJob(one),
        step.first('decision', { answered: approval, done: other, late: { delayMs: 86_400_000 } }),
      ]);
      return detached.id;
    });
    const ids = new Map<string, number>();
    for (const { name, output } of await queue.workflows.steps(database.db, id))
      for (const child of Object(output).ids ?? []) ids.set(name, child);
    const said = textOf(await page(dashboardFor(), `/jobs/${id}`));
    const one = `#${ids.get('one')} : 0 of 1 ended`;
    const several = `signal approval · #${ids.get('other')} : 0 of 1 ended · until`;
    expect(said).toMatch(new RegExp(`one: end wait \\S+ \\S+ waiting · ${one}`));
    expect(said).toMatch(new RegExp(`decision first \\S+ \\S+ waiting · ${several}`));
    expect(said).toContain(`signal approval or #${ids.get('other')} : 0 of 1 ended until in 23 h`);
    // Nothing waits for it.
    expect(said.split(`#${ids.get('detached')} `)).toHaveLength(2);
  });

  test('no longer names what an earlier wait has left', async () => {
    const id = await run(async ({ step, job }) => {
      await queue.workflows.signal(database.db, { id: job.id }, reminder);
      await step.first('early', { never: approval, reminded: reminder });
      await step.first('later', { reminded: reminder });
    });
    expect(textOf(await page(dashboardFor(), `/jobs/${id}`))).toMatch(/Waits for signal reminder (?!or)/);
  });

  test('counts members that it has added to a flow where the flow counts them', async () => {
    const { jobIds } = await queue.workflows.enqueueFlow(database.db, (flow) => {
      flow.add(fulfil, 7);
    });
    const adds = handle(fulfil, async ({ step }) => {
      await step.addToFlow('more', part, [{ payload: 1 }]);
      await step.waitForSignal(approval);
    });
    await drain(database.db, { queue, handlers: [adds], deadlineMs: 20_000 });
    const [child] = (await queue.list(database.db, { kind: part.kind })).jobs;
    const said = textOf(await page(dashboardFor(), `/jobs/${jobIds[0]}`));
    expect(said).toMatch(new RegExp(`more enqueue .* · #${child?.id} `));
    expect(said).not.toMatch(/\d ended/);
  });

  test('of an ended job waits for nothing more', async () => {
    const id = await waiting();
    await queue.cancel(database.db, id);
    const said = textOf(await page(dashboardFor(), `/jobs/${id}`));
    expect(said).toMatch(/answer signal 20\S* \S+ left open/);
    expect(said).not.toContain('Waits for');
  });

  test('without steps has no card of them', async () => {
    const { id } = await queue.enqueue(database.db, fulfil, 7);
    expect(await page(dashboardFor(), `/jobs/${id}`)).not.toContain('steps-title');
  });

  test('shows the newest of many, and the beginning of a large output', async () => {
    const id = await waiting();
    await database.client`
      insert into queue_steps (job_id, queue, name, kind, fence, started_at, ended_at, output)
      select ${id}, 'q', 'turn-' || n, 'run', 1, now() + n * interval '1 ms', now() + n * interval '2 ms',
        case when n = 400 then to_jsonb(repeat('x', 10000)) else '1' end
      from generate_series(1, 400) as n`;
    const html = await page(dashboardFor(), `/jobs/${id}`);
    const said = textOf(html);
    expect(said).toContain('The newest 200 of 402 steps.');
    expect(said).toContain(`npx drizzle-queue show ${id} prints all`);
    expect(html).toContain('id="step-402"');
    expect(html).not.toContain('id="step-202"');
    expect(html).not.toContain('turn-200<');
    expect(said).toContain('The first 4,096 of 10,002 characters.');
    const [, href = ''] = /<a href="(\/jobs\/\d+\/step\?name=turn-400)">/.exec(html) ?? [];
    const file = await get(dashboardFor(), href);
    expect(file.headers.get('content-disposition')).toBe(`attachment; filename="job-${id}-step.json"`);
    expect(await file.json()).toBe('x'.repeat(10_000));
  });

  test('says that steps cannot be read where their tables are missing, and shows the rest', async () => {
    const id = await waiting();
    await database.client`alter table queue_steps rename to queue_steps_away`;
    try {
      const said = textOf(await page(dashboardFor(), `/jobs/${id}`));
      expect(said).toContain('The steps could not be read');
      expect(said).toContain('Payload 7');
    } finally {
      await database.client`alter table queue_steps_away rename to queue_steps`;
    }
  });
});

test('a queue without workflows sends no statement about them', async () => {
  const id = await waiting();
  const sent: string[] = [];
  const watched = (of: Pick<typeof queue, 'tables'>) => {
    sent.length = 0;
    const db = another(database.db);
    const begin = database.db.transaction.bind(database.db);
    db.transaction = ((task: Parameters<typeof begin>[0]) =>
      begin((tx) => {
        const execute = tx.execute.bind(tx);
        tx.execute = ((query: Parameters<typeof execute>[0]) => {
          sent.push(new PgDialect().sqlToQuery(query as SQL).sql);
          return execute(query);
        }) as typeof tx.execute;
        return task(tx);
      })) as typeof db.transaction;
    return dashboardFor({ db }, of);
  };
  expect(await page(watched(createQueue()), `/jobs/${id}`)).not.toContain('steps-title');
  expect(sent.length).toBeGreaterThan(0);
  expect(sent.filter((text) => /queue_steps|queue_mailboxes/.test(text))).toEqual([]);
  expect(await page(watched(queue), `/jobs/${id}`)).toContain('steps-title');
});

describe('what show decides', () => {
  test('holds for names, outputs and errors of steps', async () => {
    const asked: ShownField[] = [];
    const hide = (field: ShownField) => {
      asked.push(field);
      return null;
    };
    const id = await run(async ({ step }) => {
      await step.run('MARK-1', () => ({ MARK: 'MARK-output' }));
      await step.run('MARK-2', { attempts: 1 }, () => {
        throw new TypeError('MARK-message');
      });
    });
    const html = await page(dashboardFor({ show: hide }), `/jobs/${id}`);
    expect(html).not.toContain('MARK');
    const kinds = asked
      .filter(({ step }) => step !== undefined)
      .map(({ field, step, text }) => [field, step, text]);
    expect(kinds).toContainEqual(['step', 'MARK-1', 'MARK-1']);
    expect(kinds).toContainEqual(['output', 'MARK-1', expect.stringContaining('MARK-output')]);
    expect(kinds).toContainEqual(['error', 'MARK-2', 'MARK-message']);
    expect(asked.every(({ job }) => job?.id === id)).toBe(true);
    const answer = await get(dashboardFor({ show: hide }), `/jobs/${id}/step?name=MARK-1`);
    expect(answer.status).toBe(404);
  });

  test('holds for the ids of children, which stand in the output of their step', async () => {
    const id = await run(async ({ step }) => {
      const shown = await step.enqueue('shown', part, 1);
      const hidden = await step.enqueueMany('hidden', part, [{ payload: 2 }, { payload: 3 }]);
      await step.first('decision', { shown, approved: approval });
      return hidden.ids;
    });
    const ids = new Map<string, readonly number[]>();
    for (const { name, output } of await queue.workflows.steps(database.db, id))
      ids.set(name, Object(output).ids);
    const [shown = 0] = ids.get('shown') ?? [];
    const hidden = ids.get('hidden') ?? [];
    expect(hidden).toHaveLength(2);
    const pageWith = async (ofHidden: (text: string) => string | null) => {
      const show = ({ field, step, text }: ShownField) =>
        field === 'output' && step === 'hidden' ? ofHidden(text) : text;
      return await page(dashboardFor({ show }), `/jobs/${id}`);
    };
    for (const html of [await pageWith(() => null), await pageWith((text) => text.replaceAll(/\d/g, '…'))]) {
      for (const each of hidden) expect(html).not.toMatch(new RegExp(`#${each}\\b|/jobs/${each}"`));
      expect(textOf(html)).toContain('hidden enqueue');
      expect(textOf(html)).toContain(' · children: 0 of 2 ended');
      expect(html).toContain(`<a href="/jobs/${shown}">#${shown}</a>`);
    }
    for (const each of hidden) expect(await pageWith((text) => text)).toContain(`href="/jobs/${each}"`);
    const nothing = textOf(await page(dashboardFor({ show: () => null }), `/jobs/${id}`));
    expect(nothing).toMatch(/Waits for .*children: 0 of 1 ended/);
  });

  test('a name that is changed is in no link', async () => {
    const id = await waiting();
    await database.client`
      update queue_steps set output = to_jsonb(repeat('x', 10000)) where name = 'charge <b>'`;
    const show = ({ field, text }: ShownField) => (field === 'step' ? text.replace('charge', 'c…') : text);
    const html = await page(dashboardFor({ show }), `/jobs/${id}`);
    expect(html).toContain('c… &lt;b&gt;');
    expect(html).not.toContain('/step?name=');
  });
});

describe('a scoped viewer', () => {
  test('gets no output of a step of a job outside of the scope', async () => {
    const id = await waiting();
    const path = `/jobs/${id}/step?name=${encodeURIComponent('charge <b>')}`;
    const inside = dashboardFor({ authorize: () => ({ queues: ['q'] }) });
    expect((await get(inside, path)).status).toBe(200);
    expect(await stepsOn(inside, id)).toContain('charge');
    const outside = dashboardFor({ authorize: () => ({ queues: ['other'] }) });
    expect((await get(outside, path)).status).toBe(404);
    expect((await get(outside, `/jobs/${id}`)).status).toBe(404);
  });

  test.each(['', '%00', 'nothing', 'x'.repeat(300)])('a name that is none is not found: %s', async (name) => {
    const id = await waiting();
    expect((await get(dashboardFor(), `/jobs/${id}/step?name=${name}`)).status).toBe(404);
  });
});
