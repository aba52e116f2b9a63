CREATE TABLE "queue_groups" (
	"queue" text NOT NULL,
	"group_key" text NOT NULL,
	"ready_at" timestamp with time zone NOT NULL,
	"turn" bigint DEFAULT 0 NOT NULL,
	"rate_used" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"held" bigint[] DEFAULT '{}' NOT NULL,
	"bounded_since" timestamp with time zone,
	CONSTRAINT "queue_groups_pkey" PRIMARY KEY("queue","group_key")
);
--> statement-breakpoint
CREATE TABLE "queue_holds" (
	"queue" text NOT NULL,
	"group_key" text NOT NULL,
	"job_id" bigint NOT NULL,
	"until" timestamp with time zone NOT NULL,
	"worker_id" bigint,
	CONSTRAINT "queue_holds_pkey" PRIMARY KEY("queue","group_key","job_id")
);
--> statement-breakpoint
CREATE TABLE "queue_keys" (
	"queue" text NOT NULL,
	"kind" text NOT NULL,
	"key" text NOT NULL,
	"until" timestamp with time zone NOT NULL,
	CONSTRAINT "queue_keys_pkey" PRIMARY KEY("queue","kind","key")
);
--> statement-breakpoint
CREATE TABLE "queue_limits" (
	"queue" text NOT NULL,
	"kind" text DEFAULT '' NOT NULL,
	"group_key" text DEFAULT '' NOT NULL,
	"concurrency" integer,
	"rate_limit" integer,
	"rate_per_ms" bigint,
	"weight" integer,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "queue_limits_pkey" PRIMARY KEY("queue","kind","group_key"),
	CONSTRAINT "queue_limits_rate_check" CHECK (num_nonnulls(rate_limit, rate_per_ms) <> 1)
);
--> statement-breakpoint
CREATE TABLE "queue_notes" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "queue_notes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"due_at" timestamp with time zone NOT NULL,
	"queue" text NOT NULL,
	"group_keys" text[] NOT NULL,
	CONSTRAINT "queue_notes_pkey" PRIMARY KEY("queue","due_at","id")
);
--> statement-breakpoint
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
CREATE TABLE "queue_usage" (
	"queue" text NOT NULL,
	"kind" text DEFAULT '' NOT NULL,
	"leases" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"rate_used" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "queue_usage_pkey" PRIMARY KEY("queue","kind")
);
--> statement-breakpoint
CREATE INDEX "queue_groups_ready_idx" ON "queue_groups" USING btree ("queue","ready_at","turn") WHERE turn >= 0;--> statement-breakpoint
CREATE INDEX "queue_keys_until_idx" ON "queue_keys" USING btree ("until");--> statement-breakpoint
CREATE INDEX "queue_schedules_next_at_idx" ON "queue_schedules" USING btree ("next_at") WHERE paused_at is null;