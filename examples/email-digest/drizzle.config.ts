import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/email-digest/schema.ts',
  out: './examples/email-digest/drizzle',
});
