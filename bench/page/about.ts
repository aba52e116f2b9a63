/** What each scenario means, for the reader of its tables. */
export const ABOUT: Readonly<Record<string, string>> = {
  drain: `A backlog of no-op jobs, and one worker process: how fast is the machinery itself? drizzle-queue runs with its default
options and a handler per job. The peers are set up as fast as their documentation knows how, and once more as they come.
*The limit* is our own claim and delete statements with no worker around them, from a bare postgres.js loop and, where it is
installed, from pgbench. What a job of yours does will take longer than any of this.

Keep in mind what each does per job. graphile-worker deletes a finished job and keeps nothing; compare it with "no results". pg-boss
keeps every finished job, and its handler takes a whole batch that succeeds or fails as one. drizzle-queue
with results keeps each job, its payload and its output; with outcomes, all of it but the payload.`,
  pinned: `Some report, some forgotten transaction, some replica holds an old snapshot: Postgres may then remove no dead row, and a
queue makes at least one per job. Does the queue get slower with each job that is done?`,
  scheduled: `A queue holds more than what is due for this worker: jobs for tomorrow, other queues, kinds that only newer workers
know. What do they cost a claim that does not want them?`,
  handlers: `Most handlers wait for something else: an API, a mail server, a model. Does the worker keep all of its slots busy meanwhile, and
what does each job cost its process? What is shown beside them is the same waiting with no queue at all, which is the most that can
be had. If your handlers wait, a worker does as many of them a second as it has slots for, times the last column but one.`,
  transactional: `Handlers that write to your database: an order, a balance, an entry of a ledger. With \`complete(tx)\` the end of the job commits
together with what the handler writes, so a crash in between does neither a second time. What does that cost beside writing first
and ending the job afterwards, which is what a queue does that cannot take part in your transaction?`,
  enqueue: `The transactions of the app, each with an order and a job. What wakes the workers must not slow these down: \`NOTIFY\`
holds a lock of the whole server during the commit. And in bulk: what does an enqueue cost beyond the insert itself?`,
  latency: `From the moment that the enqueuer knows of its commit, to the handler's first line in another process. A job that is
visible later than others with a later time (a *late commit*: its transaction stayed open) must not be overlooked. A user who
waits for a job waits for this on top of its work, and at every rate it is shown beside the peers that are quick enough to compare.`,
  concurrency: `One queue, and more and more claim loops on two cores. They share what the machine has, so the total cannot double
for ever; it must not fall.`,
  idle: `Most workers wait most of the time. What does waiting cost?`,
  control: `What do limits, fair shares and orders cost beside the same jobs without them? The peers are shown with what they have of
it, each also over what it does without.`,
  limits: `What limits and fair shares ask of themselves, all of it in one run: a part of the rate of plain jobs, no claim that takes much
longer than the others, no long wait of a new tenant, and no slot that stands empty.`,
  memory: `Does a worker grow with the jobs that it has done? And with payloads of a megabyte, how many of them does it hold at
once?`,
  workflows: `Handlers in steps, each of which is recorded, beside engines of durable workflows on the same PostgreSQL. What does a step cost,
how many short workflows are done in a second, and what do those cost that wait? *Started*: the process that works starts each
workflow and waits until its end is recorded. *Queued*: a backlog is worked off. DBOS runs a workflow in the process that starts it
and keeps it in memory while it waits; the others park it in the database.`,
  mixed: `Jobs come and go at the same time, as in life: does the backlog stay small, and the table?`,
};
