package io.eventsql.spring.shop;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.PreUpdate;
import jakarta.persistence.Table;
import jakarta.persistence.Transient;

/** An entity that calls the application when a change of it is flushed. */
@Entity
@Table(name = "notes")
class OrderNote {
    @Id
    private String id;

    private String content;

    @Transient
    private Runnable beforeUpdate = () -> {};

    protected OrderNote() {}

    OrderNote(String id) {
        this.id = id;
    }

    void change(String newContent, Runnable callback) {
        content = newContent;
        beforeUpdate = callback;
    }

    @PreUpdate
    void callBack() {
        beforeUpdate.run();
    }
}
