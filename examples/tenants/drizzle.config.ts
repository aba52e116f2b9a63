import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/tenants/schema.ts',
  out: './examples/tenants/drizzle',
});
