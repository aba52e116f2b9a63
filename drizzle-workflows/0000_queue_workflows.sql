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
