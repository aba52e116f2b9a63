/** Applies the migrations, as a deploy does before it starts the app and the workers. */
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { client, db } from './lib/database';

migrate(db, { migrationsFolder: 'drizzle' }).finally(() => client.end({ timeout: 5 }));
