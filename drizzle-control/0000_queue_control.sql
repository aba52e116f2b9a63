CREATE TABLE "queue_schedules" (
	"name" text PRIMARY KEY NOT NULL,
	"queue" text NOT NULL,
	"kind" text NOT NULL,
	"payload" jsonb NOT NULL,
	"settings" jsonb NOT NULL,
	"cron" text,
	"every_ms" bigint,
	"time_zone" text NOT NULL,
	"catch_up" text NOT NULL,
	"overlap" boolean NOT NULL,
	"starts_at" timestamp with time zone,
	"ends_at" timestamp with time zone,
	"next_at" timestamp with time zone,
	"passed_at" timestamp with time zone NOT NULL,
	"last_at" timestamp with time zone,
	"paused_at" timestamp with time zone,
	"revision" bigint DEFAULT 0 NOT NULL,
	"declared_by" bigint,
	"seen_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "queue_schedules_timing_check" CHECK (num_nonnulls(cron, every_ms) = 1)
);
--> statement-breakpoint
CREATE INDEX "queue_schedules_next_at_idx" ON "queue_schedules" USING btree ("next_at") WHERE paused_at is null;