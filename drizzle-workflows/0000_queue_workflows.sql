CREATE TABLE "queue_batches" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "queue_batches_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"flow_id" bigint,
	"total" bigint NOT NULL,
	"pending" bigint NOT NULL,
	"failed" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"recounted_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	"waiting" text,
	"cancel_reason" text,
	CONSTRAINT "queue_batches_pkey" PRIMARY KEY("id")
);
--> statement-breakpoint
CREATE TABLE "queue_mailboxes" (
	"job_id" bigint NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	"received" integer DEFAULT 0 NOT NULL,
	"waiting" boolean DEFAULT false NOT NULL,
	"queue" text NOT NULL,
	"name" text NOT NULL,
	"sent" jsonb DEFAULT '[]'::jsonb NOT NULL,
	CONSTRAINT "queue_mailboxes_pkey" PRIMARY KEY("job_id","queue","name")
);
--> statement-breakpoint
CREATE TABLE "queue_steps" (
	"job_id" bigint NOT NULL,
	"fence" bigint NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	"until" timestamp with time zone,
	"attempts" smallint DEFAULT 1 NOT NULL,
	"queue" text NOT NULL,
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"signal" text,
	"trace" text,
	"output" jsonb,
	"error" jsonb,
	CONSTRAINT "queue_steps_pkey" PRIMARY KEY("job_id","queue","name")
);
--> statement-breakpoint
CREATE TABLE "queue_tallies" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "queue_tallies_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"batch_id" bigint NOT NULL,
	"added" integer DEFAULT 0 NOT NULL,
	"ended" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"cancel_reason" text,
	CONSTRAINT "queue_tallies_pkey" PRIMARY KEY("batch_id","id")
);
--> statement-breakpoint
CREATE TABLE "queue_waits" (
	"batch_id" bigint NOT NULL,
	"job_id" bigint NOT NULL,
	"queue" text NOT NULL,
	"policy" text NOT NULL,
	CONSTRAINT "queue_waits_pkey" PRIMARY KEY("batch_id","job_id","queue")
);
--> statement-breakpoint
CREATE INDEX "queue_batches_flow_idx" ON "queue_batches" USING btree ("flow_id") WHERE flow_id is not null;--> statement-breakpoint
CREATE INDEX "queue_waits_job_idx" ON "queue_waits" USING btree ("job_id");