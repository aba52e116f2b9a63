import { defineJob } from 'drizzle-queue';
import { z } from 'zod';

export const sendMail = defineJob('send-mail', {
  payload: z.object({ number: z.number() }),
  queue: 'mails',
});

/** What the tests import by. */
export const mapping = {
  mail: { job: sendMail, payload: (data: { n: number }) => ({ number: data.n }) },
};
