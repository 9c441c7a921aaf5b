"""The demonstration: a hidden group that plain Cox fails, who they are, and what each remedy does for them."""

from drosurv.workflows.demo.story import Chapter, Story, contenders, story_report, tell

__all__ = ["Chapter", "Story", "contenders", "story_report", "tell"]
