import { defineConfig } from 'drizzle-kit';

/** Paths are relative to where drizzle-kit is run: the root of the repository. */
export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/shop/schema.ts',
  out: './examples/shop/drizzle',
  dbCredentials: { url: process.env.DATABASE_URL ?? '' },
});
