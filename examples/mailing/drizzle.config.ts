import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/mailing/schema.ts',
  out: './examples/mailing/drizzle',
});
