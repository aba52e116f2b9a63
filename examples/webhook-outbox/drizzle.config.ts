import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/webhook-outbox/schema.ts',
  out: './examples/webhook-outbox/drizzle',
});
